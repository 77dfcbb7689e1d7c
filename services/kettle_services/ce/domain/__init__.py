"""What a compute entrypoint decides, without doing it."""
