"""How many nodes of a workflow are in which state, in the words and the columns that others read."""

from typing import NamedTuple


class Counts(NamedTuple):
    """Each node of the workflow is in one of the columns; service nodes and hidden joins are none."""

    total: int = 0
    done: int = 0
    pre: int = 0
    queued: int = 0
    post: int = 0
    ready: int = 0
    unready: int = 0
    failed: int = 0
    futile: int = 0


class Jobs(NamedTuple):
    """The jobs of the nodes."""

    submitted: int = 0
    """All that there ever were."""
    idle: int = 0
    held: int = 0
    running: int = 0
    completed: int = 0
    """Those that succeeded."""


def table(counts: Counts) -> list[str]:
    """The table of `.dagman.out`."""
    return [
        f"Of {counts.total} nodes total:",
        " Done     Pre   Queued    Post   Ready   Un-Ready   Failed   Futile",
        "  ===     ===      ===     ===     ===        ===      ===      ===",
        f"{counts.done:5d}   {counts.pre:5d}    {counts.queued:5d}   {counts.post:5d}   {counts.ready:5d}"
        f"      {counts.unready:5d}    {counts.failed:5d}    {counts.futile:5d}",
    ]
