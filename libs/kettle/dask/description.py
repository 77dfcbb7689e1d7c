"""
A cluster in words: what is asked for, read and checked; what there is, as a sentence and as a piece of a page.
"""

# distributed has no types:
# pyright: reportUnknownArgumentType=false, reportUnknownVariableType=false

from collections.abc import Mapping, Sequence
from html import escape
from typing import Any, Final

from dask.utils import parse_bytes, parse_timedelta

from kettle.dask.session_service import Limits, Situation, Wish

_WORDS: Final = frozenset(
    {"profile", "cores", "memory", "gpus", "disk", "image", "site", "life", "idle", "share"}
)
_SCHEDULERS: Final = ("job", "local")


def read_wish(
    workers: int | None,
    *,
    name: str,
    minimum: int | None,
    maximum: int | None,
    scheduler: str = "job",
    **others: Any,
) -> Wish:
    """
    What the arguments of a cluster ask for.

    Raises:
        TypeError: there is no such argument, or it is of the wrong kind.
        ValueError: what it says is not to be had.
    """
    if unknown := sorted(others.keys() - _WORDS):
        raise TypeError(
            f"a cluster has no '{unknown[0]}': there are n, name, minimum, maximum, scheduler, {', '.join(sorted(_WORDS))}"
        )
    if scheduler not in _SCHEDULERS:
        raise ValueError(
            f"scheduler is 'job' (one of the pool's) or 'local' (this program), not {scheduler!r}"
        )
    share = others.get("share") or ()
    return Wish(
        workers=_count("n", workers),
        profile=others.get("profile") or "",
        name=name,
        cores=_count("cores", others.get("cores")) or 0,
        memory_mib=_mebibytes("memory", others.get("memory")),
        gpus=_count("gpus", others.get("gpus")) or 0,
        disk_mib=_mebibytes("disk", others.get("disk")),
        image=others.get("image") or "",
        site=others.get("site") or "",
        adapt=read_limits(minimum, maximum),
        life_s=_seconds(others.get("life")),
        idle_s=_seconds(others.get("idle")),
        share=[share] if isinstance(share, str) else list(share),
        local=scheduler == "local",
    )


def read_limits(minimum: int | None, maximum: int | None) -> Limits | None:
    """
    Between which numbers a cluster adapts; None if neither is given.

    Raises:
        ValueError: there is nothing between them, or no upper one.
    """
    if minimum is None and maximum is None:
        return None
    low, high = _count("minimum", minimum) or 0, _count("maximum", maximum)
    if high is None:
        raise ValueError("a cluster that adapts needs a maximum: how many workers it may have at most")
    if low > high:
        raise ValueError(f"a cluster cannot have at least {low} and at most {high} workers")
    return Limits(low, high)


def _count(name: str, value: Any) -> int | None:
    if value is None:
        return None
    if not isinstance(value, int) or isinstance(value, bool):
        raise TypeError(f"{name} is a whole number, not {value!r}")
    if value < 0:
        raise ValueError(f"{name} cannot be {value}")
    return value


def _mebibytes(name: str, value: Any) -> int:
    """A number of them, or an amount with its unit; 0: nothing is said."""
    return int(parse_bytes(value) // 2**20) if isinstance(value, str) else _count(name, value) or 0


def _seconds(value: Any) -> float | None:
    return None if value is None else float(parse_timedelta(value, default="seconds"))


def said_of(situation: Situation | None, trouble: str) -> str:
    """Why a cluster is as it is, in a sentence or two; empty when there is nothing to say."""
    known = ""
    if situation is not None:
        known = ": ".join(each for each in (situation.state, situation.reason) if each)
        if situation.summary and not situation.over:
            known = f"{known}; {situation.summary}"
    if trouble:
        return f"The pool does not answer ({trouble}); it is asked again. Last known: {known or 'nothing'}."
    return known


def html_of(
    name: str, situation: Situation | None, trouble: str, workers: Mapping[str, Any], links: Sequence[str]
) -> str:
    """A cluster as a table for a notebook."""
    threads = sum(each.get("nthreads", 0) for each in workers.values())
    wanted = situation.wanted if situation is not None else len(workers)
    rows = [
        ("Session", f"{name} ({situation.id})" if situation is not None else name),
        ("State", said_of(situation, trouble) or "not begun"),
        ("Workers", f"{len(workers)} of {wanted}, {threads} threads"),
    ]
    if situation is not None and situation.adapt is not None:
        rows.append(("Adapts", f"between {situation.adapt.minimum} and {situation.adapt.maximum} workers"))
    cells = "".join(
        f'<tr><th style="text-align: left">{escape(word)}</th><td style="text-align: left">{escape(text)}</td></tr>'
        for word, text in rows
    )
    for link in links:
        where = escape(link, quote=True)
        cells += f'<tr><th style="text-align: left">Dashboard</th><td style="text-align: left"><a href="{where}" target="_blank">{where}</a></td></tr>'
    return f"<h4>KettleCluster</h4><table>{cells}</table>"
