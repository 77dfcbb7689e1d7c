"""Jobs that run on several machines at once: the parallel universe."""

from typing import Final

from kettle.jobs.nodes import MOST_NODES
from kettle.submit.errors import PlacelessError
from kettle.submit.expressions import integer
from kettle.submit.lookup import Lookup, placed
from kettle_wire.ads.types import Ad
from kettle_wire.codes import Universe

_NAMES: Final = frozenset({"parallel", str(int(Universe.PARALLEL))})


def is_parallel(universe: str) -> bool:
    """Whether this is the parallel universe, as a description has it."""
    return universe.strip().lower() in _NAMES


def _refuse_leftovers(lookup: Lookup) -> None:
    """What one run leaves for the next has no place for each node."""
    if given := lookup.get("checkpoint_exit_code"):
        given.refuse("jobs of the parallel universe make no checkpoints; remove checkpoint_exit_code")
    given = lookup.get("when_to_transfer_output")
    if given is not None and given.text.upper() == "ON_EXIT_OR_EVICT":
        given.refuse("what nodes of a job leave when they are evicted is not kept; write ON_EXIT")


def nodes(lookup: Lookup) -> Ad:
    """How many machines the job wants, all of them at once."""
    given, universe = lookup.get("machine_count"), lookup.get("universe")
    count = 1
    if given is not None:
        try:
            count = integer(given.text, "machine_count")
        except PlacelessError as error:
            raise placed(given, error) from error
        if not 1 <= count <= MOST_NODES:
            given.refuse(f"machine_count is a number of machines from 1 to {MOST_NODES}, not {count}")
    if universe is None or not is_parallel(universe.text):
        if given is not None and count > 1:
            given.refuse("machine_count is of the parallel universe only; write: universe = parallel")
        return {}
    if given is None:
        universe.refuse("a job of the parallel universe says how many machines it wants: machine_count = N")
    _refuse_leftovers(lookup)
    return {
        "MinHosts": count, "MaxHosts": count, "WantIOProxy": True, "JobRequiresSandbox": True, "KillSig": "SIGTERM",
    }  # fmt: skip
