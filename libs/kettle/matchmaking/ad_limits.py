"""What an ad may be at most, so that one machine or one user cannot make every cycle slow."""

from typing import Final

from kettle_wire.ads import Ad, Expr
from kettle_wire.ads.daemon import SubmitterAd

LONGEST: Final = 65_536
"""Characters of an expression; those of HTCondor's own ads have some hundreds."""
MOST: Final = 2_000
"""Attributes of an ad; a slot of a large site has some three hundred."""
MOST_JOBS: Final = 2**31 - 1
"""Idle jobs of an autocluster, and slots of a job: what counts them step by step, or divides by them, has an end."""
LONGEST_NAME: Final = 256
"""Characters of a submitter's name; a group has at most 128, and a dot and a user's name come after it."""


class Excessive(ValueError):  # noqa: N818 - what is refused is the ad
    """An ad is larger than anything that a machine or a job has cause to say."""


def checked(ad: Ad) -> Ad:
    """The ad of a slot or a job as it is; `Excessive` if there is too much of it."""
    if len(ad) > MOST:
        raise Excessive(f"{len(ad)} attributes are more than {MOST}")
    for name, value in ad.items():
        if isinstance(value, Expr) and len(value.expr) > LONGEST:
            raise Excessive(f"{name[:100]} has {len(value.expr)} characters, more than {LONGEST}")
    return ad


def checked_submitter(ad: SubmitterAd) -> SubmitterAd:
    """Check the jobs of a submitter, and the submitter's name."""
    if len(ad.name) > LONGEST_NAME:
        raise Excessive(f"the submitter's name has {len(ad.name)} characters, more than {LONGEST_NAME}")
    for request in ad.requests:
        if not (
            0 <= request.count <= MOST_JOBS
            and 1 <= request.nodes <= MOST_JOBS
            and 0 <= request.more <= MOST_JOBS
        ):
            raise Excessive(f"{request.count} jobs of {request.nodes} slots each are none that a queue has")
        checked(request.ad)
    return ad
