"""
The way from a person's program to a pool: where the pool is, the connection to it, and requests that are repeated until they are answered.
"""
