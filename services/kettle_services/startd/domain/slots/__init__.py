"""
What a machine can give away: resources, slots with their devices, and how slot types divide the machine.
"""
