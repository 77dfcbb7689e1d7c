"""
The chirp protocol, which the programs of a job speak with their starter: `server.py` listens, `conversation.py` answers.

A starter loads the dialogue when a program calls for the first time.
"""
