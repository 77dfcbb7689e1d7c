"""
What a startd decides about its machine: pure functions over the machine, the running jobs and the candidate job.
"""
