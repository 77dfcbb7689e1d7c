"""What a simulation came to: a row for each job, figures, and drawings."""
