"""Attempts of jobs at batch systems: their states, and what follows from what is said about them."""
