"""
One attempt from its assignment to the record of its end: preparation, reports and what all attempts share.
"""
