"""
What happens to jobs without anybody commanding it: policies, deferral, late materialization and starts in the local universe.
"""
