"""The directory in which a job runs: made and removed, opened safely, its output files, and its manifest."""
