"""What decides about interactive sessions; it does nothing else."""
