"""
The shell of the owner's policy: what the machine is doing, when the policy is evaluated, and the backfill that follows from it.
"""
