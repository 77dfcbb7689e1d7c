"""
What the record and the services know, as sentences: why a job is where it is, what would change it, and what happened.
"""
