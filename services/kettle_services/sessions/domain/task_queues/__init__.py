"""Decides about task queues: which worker gets which tasks, what is run again, when a queue is over."""
