"""
The starter: one process per running job, forked from a zygote; it makes the sandbox, runs the job, reports and cleans
up.

Owns      the job's process tree, its sandbox and its control group
Sends     hello, said, over to its startd on a Unix socket; final reports also to disk
Receives  run, renew, end
Survives  its zygote, and its startd until the lease ends; never its master
"""
