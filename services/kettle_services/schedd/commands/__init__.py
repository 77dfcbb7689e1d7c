"""
What the schedd answers, one module for each group of commands: users, shadows, the negotiator and running jobs.
"""
