"""
The wire contract: every message, event and subject of Kettle, and nothing else.

This package imports msgspec and nothing of ours, so that any program may depend on it alone.
"""
