"""
How those are refused who come to the bus with a wrong token: at once, and with a delay where one address has many.

Who is refused comes again, and each time costs the server three times as much as iam.  A stranger who has to wait for the
no holds a place, of which there are enough, and no processor: so those who come again and again come slowly.
"""

import asyncio
import logging
from collections import Counter
from typing import Final

from kettle.bus.nats_connection import NatsConnection
from kettle.bus.ports import BusError
from kettle.http.rate_limits import Buckets, network

LEAST_S: Final = 0.6
MOST_S: Final = 1.2
"""Less than our server waits for an answer, so that who is refused hears of it and not of a time that has run out."""
_GOLDEN: Final = 0.6180339887498949
"""Multiples of it are spread evenly: those who were refused together do not come again together."""
AT_FIRST: Final = 20.0
"""So many of one address are refused at once."""
PER_S: Final = 5.0
"""So many more of it in each second."""
MOST_OF_ONE: Final = 1_000
"""So many of one address wait to be refused; more are refused at once, for each of them holds a connection."""
MOST_KEPT: Final = 3_000
"""So many of all addresses: fewer than half of the places for those who show a token."""
_MOST_THAT_LEAVE: Final = 10_000
"""Beyond them the server says no by itself, when its patience ends."""
_REFUSED: Final = b""
"""It costs no signature. A client is never told more, and iam's record and its answers over HTTP have the reason."""

_log: Final = logging.getLogger(__name__)


class RefusalDelays:
    """How long the next refusal of an address is kept back, and how many are."""

    def __init__(self) -> None:
        self._tries = Buckets(rate=PER_S, burst=AT_FIRST)
        self._kept: Counter[str] = Counter()
        self._number = 0

    def keep(self, address: str, *, now: float) -> float:
        """Seconds for which the refusal of somebody there is kept back; 0: it is not kept."""
        asker = network(address)
        if not self._tries.take(asker, now=now):
            return 0.0
        if self._kept[asker] >= MOST_OF_ONE or self._kept.total() >= MOST_KEPT:
            return 0.0
        self._kept[asker] += 1
        self._number += 1
        return LEAST_S + self._number * _GOLDEN % 1.0 * (MOST_S - LEAST_S)

    def let_go(self, address: str) -> None:
        """One that was kept back is sent."""
        asker = network(address)
        self._kept[asker] -= 1
        if not self._kept[asker]:
            del self._kept[asker]


class Refusals:
    """Sends refusals, as long as `run` runs."""

    def __init__(self, connection: NatsConnection) -> None:
        self._connection = connection
        self._delays = RefusalDelays()
        self._leaving: asyncio.Queue[str] = asyncio.Queue(_MOST_THAT_LEAVE)

    def refuse(self, reply: str, address: str) -> None:
        """Say no to somebody at that address, who waits for it at `reply`."""
        loop = asyncio.get_running_loop()
        if delay := self._delays.keep(address, now=loop.time()):
            loop.call_later(delay, self._let_go, reply, address)
        else:
            self._send(reply)

    def _let_go(self, reply: str, address: str) -> None:
        self._delays.let_go(address)
        self._send(reply)

    def _send(self, reply: str) -> None:
        if not self._leaving.full():
            self._leaving.put_nowait(reply)

    async def run(self) -> None:
        """Send them; never returns."""
        while True:
            reply = await self._leaving.get()
            try:
                await self._connection.publish(reply, _REFUSED)
            except BusError as error:  # the server says no by itself
                _log.warning("a refusal did not leave: %s", error)
