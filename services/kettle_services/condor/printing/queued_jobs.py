"""What a table of condor_q is made of: where the jobs come from, and which table was asked for."""

from collections.abc import Callable, Mapping
from typing import NamedTuple

import msgspec

from kettle_services.condor.printing.values import Source
from kettle_wire.commands.queue import Unmade


class QueuedJobs(NamedTuple):
    """Jobs of a queue or of a file."""

    head: str
    """The lines that say of which."""
    source: Source
    unmade: list[Unmade]
    """When the jobs have been asked for: the clusters of which some are still to come."""
    person: str
    """Whose jobs are counted apart."""
    everybody: Callable[[], Mapping[str, int]]
    """How many jobs of everybody there are, by status."""


class TableChoice(msgspec.Struct):
    """Which table."""

    status: str = ""
    """`idle`, `run` or `held`: only such jobs."""
    table: str = ""
    """`factory`, `grid`, `io` or `jobset`."""
    time_of: str = ""
    """`wall`, `current` or `cpu`, if it was said which time RUN_TIME is."""
    totals: bool = False
    """Only how many jobs there are."""
    batch: bool | None = None
    """None: it was not said."""
    dag: bool = False
    """Nodes below the job of their DAG."""
    empty: bool = False
    """An empty queue has its own message."""
