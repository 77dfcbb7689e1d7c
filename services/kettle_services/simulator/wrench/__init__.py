"""
The queueing model that WRENCH has of HTCondor: a manager, a negotiator and five delays in front of other services.

It has no ClassAds, priorities or claims; it is here because studies are made with it, and because its published behaviour is
a reference that the clock and the machines of this simulator are held against.
"""
