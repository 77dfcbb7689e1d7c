"""
How condor_* commands print ads: whole, by -autoformat and -format, and in the tables of condor_q and condor_userprio.
"""
