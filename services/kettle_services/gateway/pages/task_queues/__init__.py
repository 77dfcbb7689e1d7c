"""Pages of task queues: many small commands, which a few jobs work through."""
