"""Real servers for tests: which ones a run uses, where they are, and how they are started."""
