"""
The gateway: what is recorded in the pool, for people and programs that do not speak its own protocols.

Owns      nothing
Consumes  the frames of every shard
Asks      schedds whose a cluster is; owners of shards for frames that the bus does not have
Publishes single events as JSON in the CloudEvents envelope, live and in the bounded stream MONITOR
Serves    over HTTP, if it is told to: the schemas of the events, counts of them for Prometheus
"""
