"""Trying again: how long to wait, how long to go on, and the loop that does both."""
