"""
What every part of a pool that answers over HTTP has in common: refusals as problem documents, how credentials are shown, who
asks, and how often somebody may.
"""
