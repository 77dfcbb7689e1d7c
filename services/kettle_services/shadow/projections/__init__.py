"""
Files for people that follow from the schedd's events: job event logs, the event log of the access point and mail.
"""
