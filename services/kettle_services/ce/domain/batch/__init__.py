"""What is written for batch systems, and what their commands say."""
