"""
What the kernel and the drivers of this machine offer: system calls, control groups, GPUs and file system hints.
"""
