"""
worker: the program of a machine that was made for a lease (`kettle worker run`).  It joins the pool under the name of its lease,
examines the machine, starts its master and startd, renews the lease at the scaler, and ends everything when the lease is over.
"""
