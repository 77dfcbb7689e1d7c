"""ClassAds as they travel: see `kettle_wire.ads.types`."""

from kettle_wire.ads.types import Ad, Expr, Scalar

__all__ = ["Ad", "Expr", "Scalar"]
