"""
Trust on the bus: who signs for whom, what each account shares with the others, and what each kind of identity may do.
"""
