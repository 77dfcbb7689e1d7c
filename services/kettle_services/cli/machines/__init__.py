"""Machines that join a pool and leave it: workers and access points."""
