"""
What is said to the negotiator, ours and those of other pools: the ads, the resource requests and flocking.
"""
