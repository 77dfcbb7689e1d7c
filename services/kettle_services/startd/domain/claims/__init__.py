"""
The answers about claims: which requests are granted, what may be activated on a claim, and which claims are preempted.
"""
