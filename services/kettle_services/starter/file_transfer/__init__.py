"""
Files and output that the starter moves: transfers by URL with their signed addresses, checkpoint destinations, and output streaming.
"""
