"""The projection `machines`: which machines are in the pool, and when which came and left."""

from kettle.projections.machines.projection import Machines

__all__ = ["Machines"]
