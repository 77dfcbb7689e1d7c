"""The projection `negotiation`: what each cycle gave and refused, and why; for 30 days."""

from kettle.projections.negotiation.projection import Negotiation

__all__ = ["Negotiation"]
