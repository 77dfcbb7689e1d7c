"""
Published services of running jobs: where their tunnels come in, and how people reach a service through one.
"""
