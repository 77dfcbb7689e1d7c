"""
The execution of a job: its program and limits, its process tree and suspension, its core file, and processes that work beside it.
"""
