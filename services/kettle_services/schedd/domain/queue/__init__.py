"""The fold of the schedd's shard: the queue, how it is restored and replayed, and what is read off it."""
