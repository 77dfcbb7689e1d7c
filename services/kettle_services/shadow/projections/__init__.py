"""
What is written for people from the schedd's events: job event logs, the event log of the access point and mail.
"""
