"""Decisions of the worker program: pure."""
