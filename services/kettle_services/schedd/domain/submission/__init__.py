"""
Pure rules of what is submitted and edited: checks, transforms and requirements, accounting group, job sets, and the cluster that is kept of it.
"""
