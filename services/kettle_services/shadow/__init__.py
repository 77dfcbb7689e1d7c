"""
The shadow: the submit side of running jobs, one coroutine per attempt.

Owns      nothing in the log: it reports to its schedd
Consumes  the workers' reports to its schedd, from the stream of work
Answers   look_after (its schedd), offer_input, fetch_input, answer (startds)
Asks      its schedd: sync, report; startds: activate, deactivate, confirm, fetch_output
Puts      input files that several machines want into the pool's object store
Removes   checkpoints at URLs that nobody goes on from any more
Writes    output files and the job event logs of its schedd's jobs
"""
