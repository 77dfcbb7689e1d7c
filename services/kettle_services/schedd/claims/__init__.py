"""
Claims of startds: how they are asked for, renewed under their leases, reused for the next job and released.
"""
