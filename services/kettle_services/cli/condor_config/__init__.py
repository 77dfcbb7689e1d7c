"""
HTCondor's configuration as Kettle's: read as HTCondor reads it, carried over by tables, the rest listed with reasons.
"""
