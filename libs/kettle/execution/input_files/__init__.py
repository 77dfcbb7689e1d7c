"""
Input files of jobs on their way to where these run: fetched from the submit side, and kept for the next one that wants them.
"""
