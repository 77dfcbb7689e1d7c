"""
The daemons that a master keeps running: their processes, their supervisors, the daemon list, hangs and orphans.
"""
