"""
How condor_* commands reach the pool: a short request first, the patient way after it, and access to running jobs.
"""
