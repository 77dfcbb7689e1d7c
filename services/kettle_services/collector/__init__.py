"""
The collector: what the daemons of the pool say about themselves, in one place to ask.

Owns      the shard `collector`: machine/<name>
Consumes  the bucket of public ads
Answers   query_ads (everybody)
Publishes its own ad; the frames of its shard
Makes     the buckets of ads and capabilities, with the lifetime of an ad
"""
