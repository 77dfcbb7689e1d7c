"""
People who look into a running job (condor_ssh_to_job, condor_tail): their requests and the sessions they have open.
"""
