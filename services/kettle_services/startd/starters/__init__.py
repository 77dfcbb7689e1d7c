"""
The starters of this machine: where they come from, how they are supervised, what they are told, and how the remains of dead ones are removed.
"""
