"""What the master decides: pure, so that each rule is tested without a process."""
