"""
The schedd: the job queue of one access point.

Owns      the shard `schedd.<name>`: streams `cluster/<n>`, `job/<cluster>.<proc>`, `claim/<id>`
Publishes its frames on `evt.schedd.<name>`; the ads `Submitter.<owner>@<name>` and `Scheduler.<name>`
Answers   submit, act (people), query_jobs, query_events, explain (questions); matched (negotiator); sync, report (shadows)
Asks      startds: request_claims, alive, release; shadows: look_after
"""
