"""
The attributes of an ad that can be searched in the table `history`.

A stored value is exact or absent: where a column or a `search` document cannot hold a value as the language compares
it, it is null, and a search has to read the ad.
"""

from collections.abc import Iterable, Mapping
from typing import Final

import msgspec

from kettle.jobs.ad import LATER
from kettle_wire.ads.types import Ad, Scalar

COLUMNS: Final[Mapping[str, str]] = {
    "exitcode": "exit_code",
    "remotewallclocktime": "wall_time",
    "memoryusage": "memory",
    "qdate": "queued",
    "jobstartdate": "started",
    "completiondate": "completed",
}
"""Attribute in lower case -> the column that has it, in the order of the statement `depart`."""
IDENTITY: Final[Mapping[str, str]] = {"clusterid": "cluster", "procid": "proc", "jobstatus": "status"}
"""Attributes that every ad has as integers, which nobody but the queue sets, and their columns."""
REAL: Final = frozenset({"wall_time"})
"""Columns of reals; the others are of integers."""
LONGEST: Final = 256
"""Longer text is not in the document."""
EXACT: Final = 1 << 53
"""Up to here integers and reals compare alike everywhere."""

_encode: Final = msgspec.json.Encoder().encode


class Common:
    """
    What the jobs of one cluster have in common, worked out once.

    `ad` is that of any of them that `is_like_others`; `own` are the names, in any case, of what each of them has a value of its own of.
    """

    def __init__(self, ad: Ad, own: Iterable[str]) -> None:
        varies = {name.lower() for name in (*own, *LATER, "GlobalJobId", *IDENTITY, *COLUMNS)}
        names = {name: name.lower() for name in (*LATER, *ad)}
        self._varying = [(name, key) for name, key in names.items() if key in varies]
        self._start = _encode({key: plain(ad[name]) for name, key in names.items() if key not in varies})[:-1]

    def searchable(self, ad: Ad) -> tuple[list[int | float | None], str]:
        """The values of `COLUMNS` of a job of the cluster, and the document as JSON."""
        if not is_like_others(ad):
            return searchable(ad)
        numbers, document = _own({key: plain(ad[name]) for name, key in self._varying if name in ad})
        return numbers, (b"%b,%b" % (self._start, _encode(document)[1:])).decode()


def is_like_others(ad: Ad) -> bool:
    """
    Whether the ad has only what those of the other jobs of its cluster have, too: nobody has set anything in it since.
    """
    return not (ad.get("NumChirpUpdates") or ad.get("NumEdits") or ad.get("NumRouted"))


def searchable(ad: Ad) -> tuple[list[int | float | None], str]:
    """The values of `COLUMNS`, and the document as JSON."""
    numbers, document = _own({name.lower(): plain(value) for name, value in ad.items()})
    return numbers, _encode(document).decode()


def _own(
    document: dict[str, int | float | str | None],
) -> tuple[list[int | float | None], dict[str, int | float | str | None]]:
    """A document without what columns say, and the columns."""
    for name in IDENTITY:
        del document[name]
    numbers: list[int | float | None] = []
    for name, column in COLUMNS.items():
        if name not in document:
            numbers.append(None)
            continue
        value = document[name]
        if isinstance(value, int | float) and (column in REAL or isinstance(value, int)):
            del document[name]
            numbers.append(float(value) if column in REAL else value)
        else:
            document[name] = None
            numbers.append(None)
    return numbers, document


def plain(value: Scalar) -> int | float | str | None:
    """A value as the document has it; None for what it cannot have."""
    if type(value) is str:  # for eighty attributes of each job: a match statement takes three times as long
        return folded(value) if len(value) <= LONGEST and "\0" not in value else None
    if type(value) is int or type(value) is float:
        return value if -EXACT <= value <= EXACT else None
    return int(value) if type(value) is bool else None


def folded(text: str) -> str:
    """Text as the language compares it: without regard to the case of ASCII letters."""
    return text.lower() if text.isascii() else text.encode().lower().decode()
