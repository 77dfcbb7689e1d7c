"""condor_watch_q beneath its options: where jobs are, and the picture of that."""
