"""
What the startd keeps on disk for its successor: the journal of claims and attempts, and the names that it has advertised.
"""
