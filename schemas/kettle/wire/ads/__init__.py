"""ClassAds as they travel: see `kettle.wire.ads.types`."""

from kettle.wire.ads.types import Ad, Expr, Scalar

__all__ = ["Ad", "Expr", "Scalar"]
