"""
The job queue while it is being changed: how events are recorded, jobs are selected, limits are kept and long work is sliced.
"""
