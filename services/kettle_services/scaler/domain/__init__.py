"""
What a scaler decides, as pure functions of what is recorded and what the ads say: no clock, no I/O, no randomness.
"""
