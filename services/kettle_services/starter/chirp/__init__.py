"""
The chirp protocol, which the programs of a job speak with their starter: `proxy.py` listens, `dialogue.py` answers.

A starter loads the dialogue when a program calls for the first time.
"""
