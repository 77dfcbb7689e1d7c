"""
What startd and starter tell each other of an attempt: its description, their messages, and the final reports on disk.
"""
