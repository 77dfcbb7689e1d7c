"""
What the negotiators, of this pool and of other pools, receive: the ads, the resource requests and flocking.
"""
