"""How condor_* commands reach the pool: the client for short questions, and access to running jobs."""
