"""
The spool of the access point: checkpoints and files of evicted jobs, and files that submitters send and fetch.
"""
