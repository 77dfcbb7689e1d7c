"""
Which streams a sampled audit folds. Pure.

A cluster is taken or left with all its jobs, by a hash of its number and a seed: the same seed takes the same ones again.
"""

import hashlib
from collections.abc import Sequence
from typing import Final

import msgspec

_SCALE: Final = 1 << 64


class Root(msgspec.Struct, frozen=True):
    """What a stream is about: the column of a table's key, and its value there."""

    column: str
    value: int | str


def root_of(stream: str) -> Root | None:
    """
    The cluster of a job, cluster or factory, otherwise the thing itself; None for what is about none, or about many.
    """
    kind, slash, name = stream.partition("/")
    if not slash or kind == "clusters":
        return None
    if kind not in {"job", "jobs", "cluster", "factory"}:
        return Root(kind, int(name) if name.isdecimal() else name)
    number = name.partition("#")[0].partition(".")[0]
    return Root("cluster", int(number)) if number.isdecimal() else None


class Sample:
    """Takes about `wanted` of `total` things."""

    def __init__(self, wanted: int, total: int, *, seed: int) -> None:
        self._limit = _SCALE if wanted >= total else _SCALE * wanted // total
        self._seed = seed
        self._taken: dict[str, dict[int | str, bool]] = {}

    def takes(self, stream: str) -> bool:
        """Whether a stream is one of those taken."""
        root = root_of(stream)
        if root is None:
            return False
        known = self._taken.setdefault(root.column, {})
        if root.value in known:
            return True
        digest = hashlib.blake2b(f"{self._seed} {root.column} {root.value}".encode(), digest_size=8).digest()
        if int.from_bytes(digest, "big") >= self._limit:
            return False
        known[root.value] = True
        return True

    @property
    def taken(self) -> dict[str, Sequence[int | str]]:
        """What was taken so far: values by column."""
        return {column: list(values) for column, values in self._taken.items()}
