"""Connections over which nothing is asked."""

import asyncio

from kettle.http.idle_connections import MOST_SILENT, PATIENCE_S, IdleConnections


class Line:
    """A connection from somewhere."""

    def __init__(self, address: str) -> None:
        self.transport = asyncio.Transport({"peername": (address, 4711)})
        self.ended = False

    def force_close(self) -> None:
        self.ended = True


def test_a_silent_connection_ends_and_one_that_asks_stays() -> None:
    """After some seconds; one that has asked is not looked at again."""
    now = 0.0
    lines = silent, asks = [Line("192.0.2.1"), Line("192.0.2.1")]
    idle = IdleConnections(lambda: now)
    idle.sweep(lines)
    idle.asked(asks)
    now = PATIENCE_S - 0.1
    idle.sweep(lines)
    assert not silent.ended
    now = PATIENCE_S
    idle.sweep(lines)
    assert (True, False) == (silent.ended, asks.ended)


def test_many_silent_ones_of_a_network_end_soon() -> None:
    """
    The newest of them, when they are seen a second time; a network of IPv6 counts as one, and others are not concerned.
    """
    now = 0.0
    idle = IdleConnections(lambda: now)
    lines = [Line(f"2001:db8::{number:x}") for number in range(MOST_SILENT + 3)]
    other = Line("192.0.2.1")
    idle.sweep([*lines, other])
    assert not [line for line in lines if line.ended]
    now = 1.0
    idle.sweep([*lines, other])
    assert [False] * MOST_SILENT + [True] * 3 == [line.ended for line in lines]
    assert not other.ended
