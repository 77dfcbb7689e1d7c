"""Adapters of batch systems behind one port."""
