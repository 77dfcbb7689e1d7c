"""
The compute entrypoint of one access point: gives its jobs routes, and runs those of batch systems there.

Owns      the shard `ce.<name>`: streams `routes/file`, `route/<name>`, `decision/<cluster>`, `batch/<claim>`
Publishes its frames on `evt.ce.<name>`; reports of jobs in batch systems, as a startd does
Answers   people: which routes there are, what was decided and why; its schedd and shadow: what a startd is asked
Asks      its schedd: which jobs have no route, and to record the one that each gets
"""
