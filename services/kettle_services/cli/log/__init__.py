"""
The parts of `kettle log`: where the log is, what is read of it, what it was at a moment, and how all this is shown.
"""
