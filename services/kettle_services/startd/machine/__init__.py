"""
What this machine is and has, found out before and while it is advertised: identity, resources, GPUs, container runtimes and limits.
"""
