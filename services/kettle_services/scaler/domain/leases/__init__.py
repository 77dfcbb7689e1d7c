"""
Leases, from the request of a machine to the proof that it is gone: pure decisions about what is recorded and asked for.
"""
