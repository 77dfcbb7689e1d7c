"""
Platforms and workloads as a period that Kettle's own deciders play: queue, negotiator, accountant, claims and their reuse.
"""
