"""Reports over a period of the log: usage, fair share, and what would have been by other rules."""
