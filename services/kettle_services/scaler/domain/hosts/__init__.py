"""
Machines of static pools, which sleep while nothing waits for them: pure decisions about what is recorded and asked for.
"""
