"""
Access to files of the access point: which paths a job may use, how they are resolved, and the threads in which the disk is used.
"""
