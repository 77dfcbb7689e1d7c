"""What a schedd decides, as pure functions over folded state: no clock, no I/O, no randomness."""
