"""
What commands of one family have in common: those that act on jobs, on daemons, and on attributes of jobs.
"""
