"""
Terminals in browsers: a shell beside a job that runs.

A page shows the terminal; its connection is a WebSocket, which is passed on to a program beside the job, as `condor_ssh_to_job` has one:
started by the machine for one attempt, with a right that the schedd gives to the person who asks.
"""
