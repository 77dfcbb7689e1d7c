"""What a shadow decides, as pure functions: no clock, no I/O, no randomness."""
