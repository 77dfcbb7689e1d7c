"""What iam decides, and how its record folds into what is true now: pure."""
