"""
Commands without the start of an interpreter: a process that has their modules forks them, for one person and one context.
"""
