"""`GridResource`, by which a job of the grid universe says where it runs."""

from kettle_wire.ads.types import Scalar

_KIND = "batch"


def batch_system(resource: Scalar | None) -> str:
    """The batch system of `batch NAME ...`; empty: it is none."""
    words = resource.split() if isinstance(resource, str) else []
    return words[1] if len(words) > 1 and words[0].lower() == _KIND else ""
