"""Leases as people see them: those that there are, and those that are over, which only the log knows."""

import asyncio
from collections import deque
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
MOST_ENDED: Final = 10_000
"""So many leases that are over are kept in memory, once somebody has asked for them."""
_PAGE: Final = 500


class LeaseLog:
    """Reads what was recorded of leases."""

    def __init__(self, log: Log) -> None:
        self._log = log
        self._ended: EndedLeases | None = None
        """None: nobody has asked yet."""
        self._reading = asyncio.Lock()

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

    def committed(self, frame: Frame) -> None:
        """To be told of every frame that is committed."""
        if self._ended is not None and frame.number == self._ended.last + 1:
            self._ended.take(frame)

    async def over(self, pool: str, *, since: float, head: int) -> tuple[list[LeaseShown], float]:
        """
        The leases of a pool (empty: of all) that ended, the newest last, and from when on none is missing.

        `head`: the number of the newest frame. The first question after a start reads the newest frames, each later one nothing.
        """
        async with self._reading:  # who asks at the same time has it read once
            ended = self._ended or EndedLeases(max(0, head - MOST_FRAMES))
            if ended.last < head:
                await self._read(ended)
            self._ended = ended
        found = [each for each in ended.leases if each.ended >= since and pool in {"", each.pool}]
        return found, max(since, ended.begins)

    async def _read(self, ended: "EndedLeases") -> None:
        """What was committed since; not all of it may have been told, while it was read the first time."""
        async for frame in self._log.read(SHARD, after=ended.last):
            if frame.number > ended.last:
                ended.take(frame)
            if not frame.number % _PAGE:
                await asyncio.sleep(0)  # machines are to be answered meanwhile


class EndedLeases:
    """
    The leases that are over, as the frames say that come one after the other; of many those that ended last.
    """

    def __init__(self, after: int) -> None:
        """`after`: the number of the last frame that is not looked at."""
        self.last = after
        self.begins = 0.0
        """From when on none is missing, seconds since the epoch; 0: from the beginning."""
        self.leases: Final[deque[LeaseShown]] = deque()
        self._whole = not after
        self._states: Final[dict[str, Lease]] = {}

    def take(self, frame: Frame) -> None:
        """The next frame."""
        self.last, at = frame.number, frame.at / 1e6
        if not self._whole:
            self._whole, self.begins = True, at
        for entry in _of_leases(frame):
            before = self._states.get(entry.stream)
            if before is None and entry.version > 1:
                continue  # it was requested before the first of these frames
            shown, after = _after(before, decode(entry.data), at)
            if after is not None:
                self._states[entry.stream] = after
                continue
            self._states.pop(entry.stream, None)
            self.leases.append(shown)
            if len(self.leases) > MOST_ENDED:
                self.begins = self.leases.popleft().ended


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
