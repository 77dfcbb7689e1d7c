"""
Task queues: many small commands or calls of functions, which jobs of their owner work through.

`worker` is the program of those jobs, `reading` makes tasks of files, `executor` has functions called.
"""
