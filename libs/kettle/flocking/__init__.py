"""
Visits to other pools: the passes that their administrators issue, the connections, and which service is reached by
which.
"""
