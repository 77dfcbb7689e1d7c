"""How simulated hosts fail and are repaired."""

import csv
import math
from collections.abc import Callable, Container, Iterator
from pathlib import Path
from typing import Final

import msgspec

Uniform = Callable[[], float]
"""One random number after another, in (0, 1]."""

_US: Final = 1e6


class Failures(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How one host fails."""

    mean_up: float = 0.0
    """Seconds between a repair and the next failure on average, at random without memory; 0: not at random."""
    mean_down: float = 0.0
    """Seconds until it is repaired."""
    outages: tuple[tuple[int, int], ...] = ()
    """When it is away, one after another, from and until, in microseconds; in the place of failures at random."""

    def spans(self, begin: int, uniform: Uniform) -> Iterator[tuple[int, int]]:
        """
        When it is away, one after another, if it is there from a moment on (microseconds); at random without an end.
        """
        yield from self.outages
        if self.outages or not self.mean_up:
            return
        at = float(begin)
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
