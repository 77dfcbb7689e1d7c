"""The history, up to where somebody says it should end."""

import re
from collections.abc import Callable
from typing import Any, Final

from kettle import classad
from kettle.bindings.errors import HTCondorValueError
from kettle.bindings.expressions import ExprTree
from kettle.bindings.pool_connections import ask
from kettle.bindings.values import CONTEXT
from kettle.client import PoolFile, Select
from kettle_wire.ads.types import Ad

_JOB: Final = re.compile(r"\s*(\d+)(?:\.(\d+))?\s*")
_A_TIME: Final = 1_000_000_000
"""
Some clients give a time where HTCondor expects a cluster: there are fewer clusters than seconds since 2001.
"""

Ends = Callable[[Ad], bool]


def ended(pool: PoolFile, constraint: str, match: int, since: int | str | ExprTree | None) -> list[Ad]:
    """Ads of jobs that have left the queue, newest first; `match` below 0: all of them."""
    if match == 0:
        return []
    select = Select(constraint=constraint)
    began, ends = _since(since)
    limit = max(match, 0)
    if ends is not None:  # where that is, only the whole history says
        everything = ask(pool, lambda client: client.history(Select(), limit=0))
        stop = next((index for index, ad in enumerate(everything) if ends(ad)), len(everything))
        kept = {(ad["ClusterId"], ad["ProcId"]) for ad in everything[:stop]}
        found = ask(pool, lambda client: client.history(select, limit=0))
        found = [ad for ad in found if (ad["ClusterId"], ad["ProcId"]) in kept]
        return found[:limit] if limit else found
    return ask(pool, lambda client: client.history(select, limit=limit, since=began))


def _since(since: Any) -> tuple[float | None, Ends | None]:
    match since:
        case None:
            return None, None
        case int() if since >= _A_TIME:
            return float(since), None
        case float():
            return since, None
        case int():
            return None, lambda ad: ad["ClusterId"] == since
        case str() if found := _JOB.fullmatch(since):
            cluster, proc = int(found[1]), None if found[2] is None else int(found[2])
            return None, lambda ad: ad["ClusterId"] == cluster and proc in {None, ad["ProcId"]}
        case str() | ExprTree():
            expression = since.node if isinstance(since, ExprTree) else ExprTree(since).node
            return None, lambda ad: classad.is_true(
                classad.evaluate(expression, classad.ClassAd.from_wire(ad), None, CONTEXT)
            )
        case _:
            raise HTCondorValueError(f"since is a cluster, a job, or an expression, not {since!r}")
