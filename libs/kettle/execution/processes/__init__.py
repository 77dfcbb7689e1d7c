"""
Processes that are started for jobs: the job's own, programs beside it, and the zygote that forks starters.
"""
