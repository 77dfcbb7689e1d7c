"""
Autoclusters: jobs that no machine policy can tell apart.

Two jobs share one if all significant attributes have the same text (HTCondor's rule: text, not value). The significant
attributes are the basic ones, all requests for custom resources, those that the machines of the pool look at, and all
attributes of the job that these mention, also indirectly.
"""

from collections.abc import Iterable, Mapping
from functools import lru_cache
from hashlib import blake2b
from typing import Final

import msgspec

from kettle.classad import parse, references
from kettle.jobs.lower_names import lower_names, remembered_by_names
from kettle.jobs.nodes import SAME_GROUP, is_parallel
from kettle.jobs.significant_attributes import BASIC, asks
from kettle_wire.ads import Ad, Expr, Scalar

_MOST_EDITS: Final = 256
"""Different edits of one cluster's jobs that are remembered; the number of others is worked out again."""
_HIDDEN: Final = ""
"""The name of a column that does not count: no attribute has it."""

_OF_NODES: Final = frozenset({"minhosts", "maxhosts", SAME_GROUP.lower()})
"""What else decides about jobs of several nodes."""

_encode = msgspec.msgpack.Encoder(order="sorted").encode


@lru_cache(maxsize=4096)
def mentioned(text: str) -> frozenset[str]:
    """Names, in lower case and without scope, of all attributes that an expression mentions."""
    names = (name.lower() for name in references(parse(text)).external)
    return frozenset(name.removeprefix("target.").removeprefix("my.") for name in names)


def significant(ad: Mapping[str, Scalar], extra: Iterable[str] = ()) -> list[str]:
    """The names, as `ad` spells them, of the attributes that decide its autocluster, sorted."""
    spelled = lower_names(ad)
    return _there(_reached(ad, spelled, extra), spelled)


def _there(reached: frozenset[str], spelled: Mapping[str, str]) -> list[str]:
    return sorted(spelled[name] for name in reached if name in spelled)


def _reached(ad: Mapping[str, Scalar], spelled: Mapping[str, str], extra: Iterable[str]) -> frozenset[str]:
    """
    The names in lower case of what is significant by itself in an ad, and of all that this mentions, be it there or not.
    """
    names = _always(tuple(extra)) | _amounts(tuple(spelled))
    if is_parallel({"JobUniverse": ad.get(spelled.get("jobuniverse", ""), 0)}):
        names |= _OF_NODES
    pending = list(names)
    while pending:
        value = ad.get(spelled.get(pending.pop(), ""))
        if isinstance(value, Expr):
            more = mentioned(value.expr) - names
            names |= more
            pending.extend(more)
    return names


@lru_cache(maxsize=16)
def _always(extra: tuple[str, ...]) -> frozenset[str]:
    return frozenset(name.lower() for name in (*BASIC, *extra))


@remembered_by_names
def _amounts(names: tuple[str, ...]) -> frozenset[str]:
    return frozenset(filter(asks, names))


def signature(ad: Mapping[str, Scalar], names: Iterable[str]) -> int:
    """
    The autocluster's number: a hash of the significant attributes, so that it is the same after a restart.
    """
    picture = [(name.lower(), ad[name]) for name in names]
    return int.from_bytes(blake2b(_encode(picture), digest_size=6).digest())


class Autoclusters:
    """
    Numbers the autoclusters of one cluster's jobs; looks at a job's attributes only where its cluster's jobs differ.
    """

    def __init__(
        self, ad: Ad, columns: list[str], extra: Iterable[str] = (), *, same: int | None = None
    ) -> None:
        """`same`: the autocluster of all of them, where it is known."""
        self._ad = ad
        self._extra = tuple(extra)
        self._columns = columns
        self._known: dict[bytes, int] = {}
        self._others: dict[bytes, Autoclusters] = {}
        self._varying, self.same = ([], same) if same is not None else self._looked_at()
        """`same` is the autocluster of all of them; None: they differ in it."""

    def _looked_at(self) -> tuple[list[int], int | None]:
        """The columns that decide about the autocluster of a job, or that of all jobs."""
        ad, spelled = self._ad, lower_names(self._ad)
        reached = _reached(ad, spelled, self._extra)
        varying = [i for i, name in enumerate(self._columns) if name.lower() in reached or asks(name.lower())]
        return varying, None if varying else signature(ad, _there(reached, spelled))

    def like(self, ad: Ad) -> "Autoclusters":
        """The autocluster of a cluster of one job whose ad differs in nothing that counts."""
        return Autoclusters(ad, [], self._extra, same=self.same)

    def edited(self, attributes: Ad) -> "Autoclusters":
        """
        The autoclusters of the cluster's jobs that were given these attributes by an edit, whatever they had before.
        """
        if not attributes:
            return self
        key = _encode(attributes)
        found = self._others.get(key)
        if found is None:
            if len(self._others) >= _MOST_EDITS:
                self._others.clear()
            spelled = {name.lower(): name for name in self._ad}
            ad = {**self._ad, **{spelled.get(name.lower(), name): attributes[name] for name in attributes}}
            hidden = {name.lower() for name in attributes}
            columns = [_HIDDEN if name.lower() in hidden else name for name in self._columns]
            found = self._others[key] = Autoclusters(ad, columns, self._extra)
        return found

    def of(self, row: list[Scalar]) -> int:
        """The autocluster of the job with this row."""
        if self.same is not None:
            return self.same
        varying = [row[i] for i in self._varying]
        # What an expression in the row mentions may stand in any column.
        key = _encode(row if any(isinstance(value, Expr) for value in varying) else varying)
        number = self._known.get(key)
        if number is None:
            ad = {**self._ad, **dict(zip(self._columns, row, strict=True))}
            number = self._known[key] = signature(ad, significant(ad, self._extra))
        return number
