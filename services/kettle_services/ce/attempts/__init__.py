"""
Jobs at batch systems: claimed, submitted, followed and reported as a startd does with jobs of its machine.
"""
