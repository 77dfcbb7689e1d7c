"""
The gateway: what is recorded in the pool, for people and programs that do not use its own protocols.

Owns      nothing
Consumes  the frames of every shard
Asks      schedds for owners of clusters; owners of shards for frames that the bus does not have
Publishes single events as JSON in the CloudEvents envelope, live and in the bounded stream MONITOR
Serves    over HTTP, if that is configured: the schemas of the events, counts of them for Prometheus
"""
