"""Task queues: records what is decided of them, answers their owners and their workers."""
