"""Leases as people see them: those that there are, and those that are over, which only the log knows."""

from collections.abc import Iterator
from typing import Final

import msgspec

from kettle.eventsourcing.log import Log
from kettle_services.scaler.domain.leases import lease as leases
from kettle_services.scaler.domain.leases.lease import COMING, Lease
from kettle_services.scaler.domain.outlooks import expected
from kettle_services.scaler.record import SHARD
from kettle_wire.commands.worker_pools import LeaseMoment, LeaseShown
from kettle_wire.events import Event, decode
from kettle_wire.events.lease import LeaseFailed, LeaseGone
from kettle_wire.frames import Entry, Frame
from kettle_wire.leases import LeaseState

_HOUR_S: Final = 3600.0
MOST_FRAMES: Final = 20_000
"""So many of the newest frames are looked through for leases that are over."""


class LeaseLog:
    """Reads what was recorded of leases."""

    def __init__(self, log: Log) -> None:
        self._log = log

    async def timeline(self, lease: str) -> tuple[LeaseShown | None, list[LeaseMoment]]:
        """One lease and all its events; None: there never was one."""
        told = [
            (frame.at / 1e6, entry)
            for frame, _ in await self._log.stream(SHARD, f"{leases.KIND}/{lease}")
            for entry in frame.entries
        ]
        shown: LeaseShown | None = None
        state: Lease | None = None
        for at, entry in told:
            shown, state = _after(state, decode(entry.data), at)
        return shown, [LeaseMoment(at=at, data=entry.data) for at, entry in told]

    async def known(self, lease: str) -> bool:
        """Whether there ever was such a lease."""
        return bool(await self._log.stream(SHARD, f"{leases.KIND}/{lease}"))

    async def over(self, pool: str, *, since: float, head: int) -> tuple[list[LeaseShown], float]:
        """
        The leases of a pool (empty: of all) that ended, the newest last, and from when on none is missing.

        `head`: the number of the newest frame.
        """
        after = max(0, head - MOST_FRAMES)
        states: dict[str, Lease | None] = {}
        found: list[LeaseShown] = []
        begins = since
        async for frame in self._log.read(SHARD, after=after):
            if after and frame.number == after + 1:
                begins = max(since, frame.at / 1e6)
            for entry in _of_leases(frame):
                event = decode(entry.data)
                if entry.version > 1 and entry.stream not in states:
                    continue  # it was requested before the first of these frames
                shown, states[entry.stream] = _after(states.get(entry.stream), event, frame.at / 1e6)
                if states[entry.stream] is None and shown.ended >= since and pool in {"", shown.pool}:
                    found.append(shown)
        return found, begins


def _of_leases(frame: Frame) -> Iterator[Entry]:
    return (entry for entry in frame.entries if entry.stream.startswith(f"{leases.KIND}/"))


def _after(before: Lease | None, event: Event, at: float) -> tuple[LeaseShown, Lease | None]:
    """A lease after one more event, as it is shown, and as it is folded."""
    after = leases.fold(before, event, at)  # type: ignore[arg-type]  # its stream has no others
    if after is not None:
        return shown(after, now=at), after
    assert before is not None, "the first event of a lease does not end it"
    assert isinstance(event, LeaseFailed | LeaseGone), f"{type(event).__name__} does not end a lease"
    return _ended(before, event, at), None


def shown(lease: Lease, *, now: float) -> LeaseShown:
    """A lease that is not over."""
    offer = lease.offer
    seconds = max(0.0, now - lease.accepted) if lease.accepted else 0.0
    return LeaseShown(
        lease=lease.id,
        pool=lease.requested.pool,
        offer=offer.name,
        provider=offer.provider,
        state=lease.state,
        since=lease.since,
        deadline=lease.until,
        requested=lease.made,
        accepted=lease.accepted,
        ready=lease.ready,
        expected=expected(lease) if lease.state in COMING else 0.0,
        handle=lease.handle,
        owner=lease.requested.owner,
        attempt=lease.attempt,
        cpus=offer.cpus,
        price=offer.price,
        currency=offer.currency,
        cost=offer.price * seconds / _HOUR_S,
        words=lease.unwanted or lease.words or lease.progress,
    )


def _ended(lease: Lease, event: LeaseFailed | LeaseGone, at: float) -> LeaseShown:
    """A lease that is over."""
    over = isinstance(event, LeaseGone)
    return msgspec.structs.replace(
        shown(lease, now=at),
        state=LeaseState.GONE if over else LeaseState.FAILED,
        since=at,
        deadline=0.0,
        expected=0.0,
        ended=at,
        cost=event.cost if isinstance(event, LeaseGone) else 0.0,
        error=event.error if isinstance(event, LeaseFailed) else None,
        words=lease.words if over and lease.failed else event.words,
    )
