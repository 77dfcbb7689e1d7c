"""
What lets people reach services of the job: a process beside it that keeps a tunnel to the gateway, and what the starter tells it.
"""
