"""
The state of one machine: its claims, the changes that happen to them and their fold, and the states of its slots.
"""
