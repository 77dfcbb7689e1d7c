"""
Files that move through this machine: input files and their cache, checkpoints that are being fetched, and the file transfer plugins.
"""
