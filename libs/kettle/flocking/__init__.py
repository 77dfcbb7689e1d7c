"""
Visits to other pools: the passes that their administrators issue, the connections, and who is reached by which.
"""
