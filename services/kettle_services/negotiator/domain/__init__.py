"""What a negotiator decides, as pure functions of the ads: no clock, no I/O, no randomness."""
