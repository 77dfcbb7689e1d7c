"""What a compute entrypoint decides, without anything from outside."""
