"""The event log of one shard: its port, its owner, what follows it."""
