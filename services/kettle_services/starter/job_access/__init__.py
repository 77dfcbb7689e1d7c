"""
Access to a running job (condor_ssh_to_job, condor_tail): the requests of people and their open sessions.
"""
