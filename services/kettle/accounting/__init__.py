"""
Accounting: the past of all queues of the pool.

Owns      tables in the schema `accounting`: history, usage
Consumes  the frames of every shard `schedd.*`
Answers   query_history, query_usage (everybody)
"""
