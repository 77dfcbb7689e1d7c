"""
What a starter says of its attempt: the connection to the startd, reports, the final report, and the codes with which an attempt ends.
"""
