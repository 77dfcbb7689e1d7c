"""The asking side of an upgrade, however the answer is cut."""

import asyncio
from typing import Any

import pytest

from kettle.http.upgrades import Upgrade

HEAD = b"HTTP/1.1 403 Forbidden\r\nContent-Length: 9\r\nRetry-After: 3\r\n\r\n"


class Onward(asyncio.Protocol):
    def __init__(self) -> None:
        self.heard = b""

    def data_received(self, data: bytes) -> None:
        self.heard += data


class Line:
    """A connection: what was sent, and whose it is."""

    def __init__(self) -> None:
        self.sent = b""
        self.protocol: object = None

    def write(self, data: bytes) -> None:
        self.sent += data

    def set_protocol(self, protocol: object) -> None:
        self.protocol = protocol


class RefusedHereError(Exception):
    pass


class BrokenHereError(Exception):
    pass


def asked() -> tuple[Upgrade, Onward, Line]:
    onward, line = Onward(), Line()
    upgrade = Upgrade(
        b"GET / HTTP/1.1\r\n\r\n",
        onward=lambda: onward,
        refused=lambda status, head, body: RefusedHereError(status, b"Retry-After" in head, body),
        broken=BrokenHereError,
    )
    transport: Any = line
    upgrade.connection_made(transport)
    return upgrade, onward, line


@pytest.mark.parametrize("cut", [1, 7, 1000])
async def test_a_connection_is_handed_over_with_what_came_behind_the_head(cut: int) -> None:
    upgrade, onward, line = asked()
    said = b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\n\r\nfirst"
    while said and not upgrade.done.done():
        upgrade.data_received(said[:cut])
        said = said[cut:]
    await upgrade.done
    assert (onward, b"GET / HTTP/1.1\r\n\r\n") == (line.protocol, line.sent)
    assert b"first" == onward.heard + said


async def test_a_refusal_is_told_when_all_of_it_is_there() -> None:
    upgrade, _, _ = asked()
    upgrade.data_received(HEAD + b"not ")
    assert not upgrade.done.done()
    upgrade.data_received(b"yours")
    with pytest.raises(RefusedHereError) as refused:
        await upgrade.done
    assert (403, True, b"not yours") == refused.value.args


async def test_a_refusal_that_is_cut_off_is_told_as_far_as_it_came() -> None:
    """That the connection is over as well is nothing new."""
    upgrade, _, _ = asked()
    upgrade.data_received(HEAD + b"not ")
    upgrade.connection_lost(None)
    with pytest.raises(RefusedHereError) as refused:
        await upgrade.done
    assert (403, True, b"not ") == refused.value.args


@pytest.mark.parametrize(("said", "why"), [
    (b"SSH-2.0-OpenSSH_9\r\n\r\n", "does not speak HTTP"), (b"x" * 70_000, "has no end"), (b"HTTP/1.1 2", "it says no more"),
])  # fmt: skip
async def test_what_is_no_answer_is_said(said: bytes, why: str) -> None:
    upgrade, _, _ = asked()
    upgrade.data_received(said)
    upgrade.connection_lost(None)
    with pytest.raises(BrokenHereError, match=why):
        await upgrade.done
