"""
Files of jobs whose access point does not see the submitter's disk: input files sent before the jobs run, output files fetched after their end.
"""
