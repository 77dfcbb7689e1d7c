"""What iam answers over the bus: a module for each subject."""
