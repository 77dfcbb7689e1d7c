"""What a starter decides, without I/O and without a clock: the life of one attempt as a state machine."""
