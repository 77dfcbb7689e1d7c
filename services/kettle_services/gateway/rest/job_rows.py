"""Rows of the tables `jobs.live` and `jobs.history` as jobs of the interface."""

import math
from collections.abc import Iterable
from typing import Final

import asyncpg
import msgspec

from kettle.jobs.private_attributes import for_others
from kettle.jobs.sealed_attributes import AttributeSeal
from kettle_services.gateway.rest.filters import AdFilter
from kettle_wire.ads.types import Ad, Expr, Scalar
from kettle_wire.codes import JobStatus
from kettle_wire.rest.jobs import Job, State

STATES: Final[dict[int, State]] = {
    JobStatus.IDLE: "idle",
    JobStatus.RUNNING: "running",
    JobStatus.REMOVED: "removed",
    JobStatus.COMPLETED: "completed",
    JobStatus.HELD: "held",
    JobStatus.SUSPENDED: "suspended",
}
NUMBERS: Final = {state: int(number) for number, state in STATES.items()}
SCHEDD: Final = "schedd."
"""How the shards of access points begin."""

_decode: Final = msgspec.msgpack.Decoder(Ad).decode


def queued(row: asyncpg.Record, ad: Ad | None = None, whole: Ad | None = None) -> Job:
    """
    A row of the table `live`; `whole`: all of its ad, which tells how a job has ended that stays in its queue.
    """
    code, signal = exit_of(whole or {})
    return msgspec.structs.replace(
        _job(row, ad),
        entered=row["entered_at"],
        attempts=row["attempts"],
        slot=row["slot"] if row["assigned_at"] is not None else None,
        running_since=row["assigned_at"],
        hold_reason=row["hold_reason"],
        exit_code=code,
        exit_signal=signal,
    )


def departed(row: asyncpg.Record, ad: Ad | None = None) -> Job:
    """A row of the table `history`."""
    return msgspec.structs.replace(
        _job(row, ad),
        left=row["left_at"],
        exit_code=row["exit_code"],
        exit_signal=row["exit_signal"],
        wall_time=row["wall_time"],
        memory=row["memory"],
    )


def _job(row: asyncpg.Record, ad: Ad | None) -> Job:
    """What the rows of both tables say."""
    schedd, cluster, proc = row["shard"].removeprefix(SCHEDD), row["cluster"], row["proc"]
    return Job(
        id=f"{cluster}.{proc}@{schedd}",
        schedd=schedd,
        cluster=cluster,
        proc=proc,
        owner=row["owner"],
        state=STATES[row["status"]],
        submitted=row["submitted_at"],
        attributes=ad,
    )


def exit_of(ad: Ad) -> tuple[int | None, int | None]:
    """Exit code and signal of a job that has completed; one of them at most."""
    if ad.get("JobStatus") != JobStatus.COMPLETED:
        return None, None
    code, signal = ad.get("ExitCode"), ad.get("ExitSignal")
    if ad.get("ExitBySignal") is True:
        return None, signal if isinstance(signal, int) else None
    return code if isinstance(code, int) else None, None


def stored_ad(row: asyncpg.Record) -> Ad:
    """The ad of a job that has left its queue."""
    return _decode(row["ad"])


_CLOSED: Final = AttributeSeal([])
"""Opens nothing."""


class Viewer(msgspec.Struct, frozen=True):
    """Who looks at ads, and at which attributes."""

    name: str | None
    """None: somebody who is told nothing that is an owner's alone."""
    fields: frozenset[str] = frozenset()
    """In lower case; none: all of them."""
    seal: AttributeSeal = _CLOSED
    """Opens what a queue has sealed, for its owner."""

    @classmethod
    def of(cls, name: str | None, fields: Iterable[str], seal: AttributeSeal = _CLOSED) -> "Viewer":
        """Somebody who wants these attributes."""
        return cls(name, frozenset(field.lower() for field in fields), seal)

    def finds(self, wanted: AdFilter, ad: Ad, owner: str) -> bool:
        """Whether a filter is true of an ad, by what of it is this viewer's to know."""
        return wanted.holds(ad if owner == self.name else for_others(ad))

    def sees(self, ad: Ad, owner: str) -> Ad:
        """What of an ad is shown: what is its owner's alone is left out for others."""
        seen = self.seal.opened(ad, owner) if owner == self.name else for_others(ad)
        return {
            name: shown(value)
            for name, value in seen.items()
            if not self.fields or name.lower() in self.fields
        }


def shown(value: Scalar) -> Scalar:
    """A value as JSON can have it: infinities and what is not a number are expressions."""
    if isinstance(value, float) and not math.isfinite(value):
        return Expr(f'real("{"NaN" if math.isnan(value) else "INF" if value > 0 else "-INF"}")')
    return value
