"""
The way from a person's program to a pool: where the pool is, the two transports to it, and requests that are repeated until they are answered.
"""
