"""
Running attempts as this schedd sees them: which shadow looks after each, how soon each starts, and which are disconnected.
"""
