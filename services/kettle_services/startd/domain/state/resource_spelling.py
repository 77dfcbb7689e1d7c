"""
Names of resources: they do not depend on case, and settings may change their spelling while claims have them.
"""

from collections.abc import Mapping
from typing import TypeVar

import msgspec

from kettle_services.startd.domain.state.claim import Claim
from kettle_services.startd.domain.state.machine import Facts

GPUS = "GPUs"
"""What jobs, their environment and their containers know them by, however settings spell it."""

_T = TypeVar("_T")


def as_spelt_now(claim: Claim, facts: Facts) -> Claim:
    """A recorded claim in whose names what it has is counted as given."""
    spelt = {tag.lower(): tag for tag in (GPUS, *facts.total.custom)}

    def respelt(by_tag: Mapping[str, _T]) -> dict[str, _T]:
        return {spelt.get(tag.lower(), tag): value for tag, value in by_tag.items()}

    resources = msgspec.structs.replace(claim.resources, custom=respelt(claim.resources.custom))
    return msgspec.structs.replace(claim, resources=resources, devices=respelt(claim.devices))
