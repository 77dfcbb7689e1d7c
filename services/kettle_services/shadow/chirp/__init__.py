"""
What a running job asks of its submit side through chirp: attributes, log lines, remote files and commands to the pool.
"""
