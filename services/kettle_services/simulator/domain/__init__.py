"""
Simulated time and what happens in it, as pure functions of what was recorded: no clock, no I/O, no randomness.
"""
