"""
What startd and starter exchange about an attempt: its description, their messages, and the final reports on disk.
"""
