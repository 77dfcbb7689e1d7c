"""
Makes machines, finds them and removes them at providers, as the scaler says; it decides nothing and keeps nothing.

Owns      nothing in the log
Answers   the scaler: which providers there are, make, find, look, remove, check, room, console
Asks      iam: a join token for each machine, just before it is made
Holds     the credentials of providers, which no other service sees
"""
