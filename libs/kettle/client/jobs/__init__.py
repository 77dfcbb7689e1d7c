"""What a person does with jobs: submits, selects and lists them, and looks into them while they run."""
