"""When a simulated host is there: hosts come later, go for good, fail and are repaired."""

import csv
import math
from collections.abc import Callable, Container, Iterator
from pathlib import Path
from typing import Final

import msgspec

Uniform = Callable[[], float]
"""One random number after another, in (0, 1]."""

_US: Final = 1e6


class Life(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Of one host; times in microseconds since the beginning of the simulation."""

    comes: int = 0
    goes: int | None = None
    """None: it stays."""
    mean_up: float = 0.0
    """Seconds between a repair and the next failure on average, at random without memory; 0: it never fails."""
    mean_down: float = 0.0
    """Seconds until it is repaired."""
    outages: tuple[tuple[int, int], ...] = ()
    """When it is away, one after another, from and until; in the place of failures at random."""

    def changes(self, uniform: Uniform) -> Iterator[tuple[int, bool]]:
        """When it goes (False) and comes (True), one after another; without any it is there all the time."""
        if self.comes:
            yield 0, False
            yield self.comes, True
        for down, up in self.outages or self._failures(uniform):
            if self.goes is not None and down >= self.goes:
                break
            yield down, False
            if self.goes is not None and up >= self.goes:
                return
            yield up, True
        if self.goes is not None:
            yield self.goes, False

    def _failures(self, uniform: Uniform) -> Iterator[tuple[int, int]]:
        if not self.mean_up:
            return
        at = float(self.comes)
        while True:
            down = at - self.mean_up * _US * math.log(uniform())
            at = down - self.mean_down * _US * math.log(uniform())
            yield round(down), round(at)


def read_outages(path: Path, hosts: Container[str]) -> dict[str, tuple[tuple[int, int], ...]]:
    """
    What a CSV file says of each host: lines of a host's name, and from and until when it is away, in seconds; titles may be first.

    Raises:
        ValueError: a line is none of these; the message says which.
        OSError: the file cannot be read.
    """
    found: dict[str, list[tuple[float, float]]] = {}
    with path.open(newline="", encoding="utf-8", errors="replace") as file:
        for line in (lines := csv.reader(file)):
            if not line or (lines.line_num == 1 and line[0] == "host"):
                continue
            try:
                host, since, until = line
                found.setdefault(host, []).append((float(since), float(until)))
            except ValueError as error:
                raise ValueError(f"{path}:{lines.line_num}: this is not a host, from and until") from error
            if host not in hosts:
                raise ValueError(f"{path}:{lines.line_num}: the platform has no host {host}")
    return {host: outages_of(rows) for host, rows in found.items()}


def outages_of(rows: list[tuple[float, float]]) -> tuple[tuple[int, int], ...]:
    """
    What was written of one host, in seconds, in order.

    Raises ValueError: an outage ends before it begins, or begins before another one has ended.
    """
    found = sorted((round(since * _US), round(until * _US)) for since, until in rows)
    last = 0
    for since, until in found:
        if not last <= since < until:
            raise ValueError(
                f"an outage from {since / _US:g} s until {until / _US:g} s: they end after they begin, "
                "and one of a host is over when the next one begins"
            )
        last = until
    return tuple(found)
