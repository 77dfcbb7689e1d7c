"""How fast the jobs of a large submission come into the queue (late materialisation)."""

from collections.abc import Mapping
from typing import Final

from kettle.submit.errors import PlacelessError
from kettle.submit.expressions import integer
from kettle.submit.lookup import Lookup, Setting, placed
from kettle_wire.ads.types import Ad

COMMANDS: Final[Mapping[str, str]] = {
    "max_materialize": "JobMaterializeLimit",
    "max_idle": "JobMaterializeMaxIdle",
}
"""Command -> attribute."""


def pace(lookup: Lookup) -> Ad:
    """At most how many jobs are in the queue at a time, and how many of them wait there."""
    return {
        attribute: _jobs(given, name) for name, attribute in COMMANDS.items() if (given := lookup.get(name))
    }


def _jobs(given: Setting, name: str) -> int:
    try:
        value = integer(given.text, name)
    except PlacelessError as error:
        raise placed(given, error) from error
    if value < 1:
        given.refuse(f"{name} is a number of jobs, at least 1; with {value} none would run")
    return value
