"""What is recorded of jobs, followed as it is recorded, and how far a set of jobs has come."""
