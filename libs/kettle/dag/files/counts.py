"""How many nodes of a workflow are in which state, in the words and the columns that others read."""

from typing import NamedTuple


class Counts(NamedTuple):
    """Each node of the workflow is in one of the columns; service nodes are none."""

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
    total, done, pre, queued, post, ready, unready, failed, futile = counts
    return [
        f"Of {total} nodes total:",
        " Done     Pre   Queued    Post   Ready   Un-Ready   Failed   Futile",
        "  ===     ===      ===     ===     ===        ===      ===      ===",
        f"{done:5d}   {pre:5d}    {queued:5d}   {post:5d}   {ready:5d}      {unready:5d}    {failed:5d}    {futile:5d}",
    ]
