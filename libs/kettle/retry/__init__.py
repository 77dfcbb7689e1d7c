"""
Waiting for others: how long to wait before trying again, how long to go on, the loop that does both, and locks of files.
"""
