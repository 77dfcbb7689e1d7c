"""The protocol of tunnels: both ends, with any cuts and any order between them."""

from collections import deque
from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kettle.published import frames
from kettle.published.errors import ProtocolViolation, StreamCode, TunnelClosedError
from kettle.published.flow import BUDGET, Budget, Incoming
from kettle.published.frames import FIRST_WINDOW, Announcement, FrameKind, frame
from kettle.published.multiplexer import (
    Accepted,
    Announced,
    Asked,
    Came,
    Closed,
    Ended,
    Event,
    Multiplexer,
    NotAccepted,
    Pinged,
    Renewed,
    WasReset,
)
from kettle.published.services import Service


class Ends:
    """Two ends, and what each has received; what is under way is cut as the test says."""

    def __init__(self) -> None:
        self.mux = [Multiplexer(opens=True), Multiplexer(opens=False)]
        self.way: list[deque[bytes]] = [deque(), deque()]
        """Towards each of them."""
        self.got: list[dict[int, bytearray]] = [{}, {}]
        self.unread: list[dict[int, int]] = [{}, {}]
        self.events: list[list[Event]] = [[], []]
        self.reads = True

    def send(self, end: int, limit: int = 1 << 20) -> None:
        """Put what one end has to send on its way."""
        data = b"".join(self.mux[end].take(limit))
        if data:
            self.way[1 - end].append(data)

    def arrive(self, end: int, cut: int) -> None:
        """Have some of what is on its way arrive."""
        way = self.way[end]
        if not way:
            return
        first = way.popleft()
        if cut < len(first):
            way.appendleft(first[cut:])
        for event in self.mux[end].receive(first[:cut]):
            self.hear(end, event)

    def hear(self, end: int, event: Event) -> None:
        match event:
            case Came(stream=stream, data=data):
                self.got[end].setdefault(stream, bytearray()).extend(data)
                self.unread[end][stream] = self.unread[end].get(stream, 0) + len(data)
                if self.reads:
                    self.read(end, stream)
            case _:
                self.events[end].append(event)

    def read(self, end: int, stream: int) -> None:
        count = self.unread[end].pop(stream, 0)
        if count:
            self.mux[end].read(stream, count)

    def step(self, what: str, end: int, stream: int, size: int) -> None:
        """One thing that may happen at any time."""
        match what:
            case "end":
                self.mux[end].end(stream)
            case "send":
                self.send(end, size)
            case "arrive":
                self.arrive(end, size)
            case "read":
                self.read(end, stream)
            case _:
                pass

    def settle(self) -> None:
        """Until nothing is under way any more."""
        while True:
            for end in (0, 1):
                if self.reads:
                    for stream in list(self.unread[end]):
                        self.read(end, stream)
                self.send(end)
            if not any(self.way):
                return
            for end in (0, 1):
                while self.way[end]:
                    self.arrive(end, 1 << 30)


STEPS = st.lists(
    st.tuples(
        st.sampled_from(["write", "send", "arrive", "read", "end"]),
        st.integers(0, 1),
        st.integers(0, 3),
        st.integers(1, 90_000),
    ),
    max_size=60,
)


@settings(max_examples=60, deadline=None)
@given(steps=STEPS)
def test_any_order_delivers_the_bytes(steps: list[tuple[str, int, int, int]]) -> None:
    """
    Whatever is cut, delayed or read late: each stream delivers exactly what was written, ends once, and what is unread is never more
    than what was granted.
    """
    ends = Ends()
    ends.reads = False
    streams = [ends.mux[0].open("web") for _ in range(4)]
    written: list[dict[int, bytearray]] = [{s: bytearray() for s in streams} for _ in (0, 1)]
    ended: list[set[int]] = [set(), set()]
    ends.settle()
    for stream in streams:
        ends.mux[1].accept(stream)
    for what, end, which, size in steps:
        stream = streams[which]
        if what == "write" and stream not in ended[end]:
            data = bytes([which * 2 + end + size % 50]) * size
            ends.mux[end].write(stream, data)
            written[end][stream] += data
        elif what == "end":
            ended[end].add(stream)
        ends.step(what, end, stream, size)
        assert all(sum(ends.unread[side].values()) <= 4 * FIRST_WINDOW + BUDGET for side in (0, 1))
    ends.reads = True
    for end in (0, 1):
        for stream in streams:
            ends.mux[end].end(stream)
    ends.settle()
    for end in (0, 1):
        for stream in streams:
            assert ends.got[1 - end].get(stream, b"") == written[end][stream]
        assert [e.stream for e in ends.events[end] if isinstance(e, Ended)].count(streams[0]) == 1
        assert ends.mux[end].streams == 0


def test_a_slow_reader_stops_nobody_else() -> None:
    """One stream that is not read is stopped after its window; another one delivers all it has."""
    ends = Ends()
    slow, quick = ends.mux[0].open("a"), ends.mux[0].open("b")
    ends.reads = False
    ends.mux[0].write(slow, bytes(10 * FIRST_WINDOW))
    for _ in range(20):
        ends.mux[0].write(quick, bytes(FIRST_WINDOW))
        ends.send(0)
        while ends.way[1]:
            ends.arrive(1, 1 << 30)
        ends.read(1, quick)
        ends.send(1)
        while ends.way[0]:
            ends.arrive(0, 1 << 30)
    assert len(ends.got[1][quick]) == 20 * FIRST_WINDOW
    assert len(ends.got[1][slow]) == FIRST_WINDOW
    assert ends.mux[0].waiting(slow) == 9 * FIRST_WINDOW


def test_streams_take_turns() -> None:
    """A stream with much to send gives way to the others after its quantum."""
    ends = Ends()
    streams = [ends.mux[0].open("web") for _ in range(8)]
    for stream in streams:
        ends.mux[0].write(stream, bytes(FIRST_WINDOW))
    for _ in range(4):
        ends.send(0, 1)
    ends.arrive(1, 1 << 30)
    while ends.way[1]:
        ends.arrive(1, 1 << 30)
    assert sorted(ends.got[1]) == streams[:4]


def test_a_reader_that_keeps_up_gets_a_larger_window() -> None:
    """As long as all of them together stay within the budget."""
    budget = Budget()
    one = Incoming(budget)
    for _ in range(20):
        count = one.left
        one.came(count)
        one.read(count)
    assert one.exposure == min(BUDGET, 4 << 20)
    many = [Incoming(budget) for _ in range(50)]
    for _ in range(20):
        for each in (one, *many):
            count = each.left
            each.came(count)
            each.read(count)
    assert sum(max(0, each.exposure - FIRST_WINDOW) for each in (one, *many)) <= BUDGET
    for each in (one, *many):
        each.close()
    assert budget.left == BUDGET
    assert budget.streams == 0


def test_a_stream_is_refused_with_a_code_and_a_sentence() -> None:
    """And the opener forgets it."""
    ends = Ends()
    stream = ends.mux[0].open("web")
    ends.settle()
    assert ends.events[1] == [Asked(stream, "web")]
    ends.mux[1].refuse(stream, StreamCode.NOTHING_LISTENS, "nothing of the job listens on port 8080 yet")
    ends.settle()
    assert ends.events[0] == [
        NotAccepted(stream, "nothing_listens", "nothing of the job listens on port 8080 yet")
    ]
    assert ends.mux[0].streams == ends.mux[1].streams == 0


def test_a_reset_is_heard_and_what_is_under_way_is_dropped() -> None:
    """Frames of a stream that is over disturb nobody."""
    ends = Ends()
    stream = ends.mux[0].open("web")
    ends.settle()
    ends.mux[1].accept(stream)
    ends.mux[0].write(stream, bytes(1000))
    ends.send(0)
    ends.mux[1].reset(stream, "enough\x1b[0m")
    ends.settle()
    assert ends.events[0] == [Accepted(stream), WasReset(stream, "enough [0m")]
    assert stream not in ends.got[1]


def test_what_the_connection_says() -> None:
    """Pings are answered; the job's side says what it publishes, and shows tickets; a close has a reason."""
    ends = Ends()
    announcement = Announcement(services=(Service("web", 80, "http"),), suspended=True)
    ends.mux[1].announce(announcement)
    ends.mux[1].renew("a.b.c")
    ends.mux[0].ping(b"12345678")
    ends.settle()
    ends.mux[1].close("the job has ended")
    ends.settle()
    assert ends.events[0] == [
        Announced(announcement),
        Renewed("a.b.c"),
        Pinged(b"12345678"),
        Closed("the job has ended"),
    ]


def test_a_tunnel_carries_so_many_streams() -> None:
    """The opener is told at once, and one that does not count is refused."""
    few = Multiplexer(opens=True, most_streams=2)
    few.open("a")
    few.open("a")
    with pytest.raises(TunnelClosedError):
        few.open("a")
    answers = Multiplexer(opens=False, most_streams=1)
    opened = frame(FrameKind.OPEN, 1, b"a") + frame(FrameKind.OPEN, 2, b"a")
    assert list(answers.receive(opened)) == [Asked(1, "a")]
    assert b"too_many" in b"".join(answers.take(0))


BAD = [
    (False, frame(FrameKind.DATA, 1, b"x"), "there was no stream 1"),
    (False, frame(FrameKind.OPENED, 1), "this side takes no OPENED"),
    (True, frame(FrameKind.OPEN, 1, b"a"), "this side takes no OPEN"),
    (False, frame(FrameKind.SERVICES), "this side takes no SERVICES"),
    (False, frame(FrameKind.OPEN, 1, b"a") * 2, "a number that was used"),
    (False, frame(FrameKind.OPEN, 1, b"../etc"), "no name of a service"),
    (False, frame(FrameKind.OPEN, 1, b"a") + frame(FrameKind.WINDOW, 1, b"123"), "four bytes"),
    (False, frame(FrameKind.OPEN, 1, b"a") + frames.window(1, (1 << 32) - 1), "more than 2 GiB"),
    (False, frame(FrameKind.OPEN, 1, b"a") + frame(FrameKind.END, 1) * 2, "has ended twice"),
    (
        False,
        frame(FrameKind.OPEN, 1, b"a") + frame(FrameKind.END, 1) + frame(FrameKind.DATA, 1, b"x"),
        "after the END",
    ),
    (
        False,
        frame(FrameKind.OPEN, 1, b"a") + frame(FrameKind.DATA, 1, bytes(FIRST_WINDOW + 1)),
        "bytes were sent on a stream that may send",
    ),
    (False, frames.HEAD.pack(FrameKind.PING, 0, 1 << 20), "at most 16384 are read"),
    (False, frames.HEAD.pack(FrameKind.DATA, 1, 1 << 30), "at most 16777216 are read"),
    (False, frame(77 * FrameKind.OPEN, 0), "there is no frame of kind 77"),  # type: ignore[arg-type]
    (True, frame(FrameKind.SERVICES, 0, b"\xc1"), "a SERVICES frame cannot be read"),
    (True, frame(FrameKind.TICKET, 0, b"\xff"), "a TICKET frame cannot be read"),
    (
        True,
        frames.announced(Announcement(services=(Service("../x", 80, "http"),))),
        "a SERVICES frame cannot be read",
    ),
]


def given_in_pieces(mux: Multiplexer, data: bytes, size: int) -> None:
    for at in range(0, len(data), size):
        list(mux.receive(data[at : at + size]))


@pytest.mark.parametrize(("opens", "data", "said"), BAD)
def test_what_is_forbidden_ends_the_connection(opens: bool, data: bytes, said: str) -> None:
    """With a reason, however it is cut."""
    for cut in (len(data), 5):
        mux = Multiplexer(opens=opens)
        with pytest.raises(ProtocolViolation, match=said):
            given_in_pieces(mux, data, cut)


@settings(max_examples=80, deadline=None)
@given(opens=st.booleans(), pieces=st.lists(st.binary(max_size=200), max_size=10))
def test_nonsense_does_nothing_but_end_it(opens: bool, pieces: list[bytes]) -> None:
    """Whatever comes, there is no other error, and not more than one frame is kept."""
    mux = Multiplexer(opens=opens)
    try:
        for piece in pieces:
            list(mux.receive(piece))
    except ProtocolViolation:
        pass


def test_streams_that_are_opened_and_broken_off_do_not_pile_up() -> None:
    """A connection that takes nothing keeps so many frames and no more, on either side; then it goes on."""
    gateway, job = Multiplexer(opens=True), Multiplexer(opens=False)

    def asked() -> None:
        for event in job.receive(b"".join(gateway.take(1 << 30))):
            assert isinstance(event, Asked)
            job.refuse(event.stream, StreamCode.TOO_MANY, "not now")

    def gives_up() -> None:
        gateway.reset(gateway.open("web"), "nobody waits for it any more")

    with pytest.raises(TunnelClosedError, match="takes nothing at the moment"):
        repeatedly(gives_up)
    list(job.receive(b"".join(gateway.take(1 << 30))))
    gives_up()

    def goes_on() -> None:
        number = gateway.open("web")
        asked()
        gateway.reset(number, "nobody waits for it any more")

    list(job.receive(b"".join(gateway.take(1 << 30))))
    with pytest.raises(ProtocolViolation, match="more is opened than is read"):
        repeatedly(goes_on)


def repeatedly(what: Callable[[], None]) -> None:
    for _ in range(20_000):
        what()
