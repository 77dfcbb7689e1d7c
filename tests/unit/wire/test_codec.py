"""Types of events that were superseded, and the bytes that were written of them."""

from collections.abc import Sequence

import msgspec
import pytest

from kettle_wire.events import CODEC, Event, NotWrittenError, Superseded, UnknownEventError, decode, encode
from kettle_wire.events.codec import Codec


class Painted(Event, frozen=True, tag="wall.painted/3"):
    wall: str
    red: int
    green: int
    blue: int
    by: str = ""


class PaintedV2(Superseded, frozen=True, tag="wall.painted/2"):
    wall: str
    colour: str
    by: str = ""

    def upcast(self) -> Painted:
        red, green, blue = (int(self.colour[at : at + 2], 16) for at in (0, 2, 4))
        return Painted(wall=self.wall, red=red, green=green, blue=blue, by=self.by)


class PaintedV1(Superseded, frozen=True, tag="wall.painted/1"):
    wall: str
    dark: bool = False

    def upcast(self) -> PaintedV2:
        return PaintedV2(wall=self.wall, colour="000000" if self.dark else "ffffff")


class Whitewashed(Superseded, frozen=True, tag="wall.whitewashed/1"):
    wall: str

    def upcast(self) -> PaintedV2:
        return PaintedV2(wall=self.wall, colour="ffffff")


class Built(Event, frozen=True, tag="wall.built/1"):
    wall: str


WALLS: Codec[Painted | Built] = Codec([Painted, Built], [PaintedV1, PaintedV2, Whitewashed])
written = msgspec.msgpack.encode


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (PaintedV2(wall="n", colour="0a0b0c", by="x"), Painted(wall="n", red=10, green=11, blue=12, by="x")),
        (PaintedV1(wall="e", dark=True), Painted(wall="e", red=0, green=0, blue=0)),
        (PaintedV1(wall="s"), Painted(wall="s", red=255, green=255, blue=255)),
        (Whitewashed(wall="w"), Painted(wall="w", red=255, green=255, blue=255)),
    ],
)
def test_what_was_written_is_read_as_its_newest_type(old: Event, new: Event) -> None:
    """An old event comes out as the type that is written today, over one step or several."""
    assert new == WALLS.decode(written(old))


def test_what_is_written_is_what_is_read() -> None:
    """A type that was never superseded passes as it is, beside others that were."""
    assert Built(wall="n") == WALLS.decode(WALLS.encode(Built(wall="n")))


def test_reading_is_repeatable() -> None:
    """Every reader of old bytes, at any time, gets the same event, and from it the same new bytes."""
    data = written(PaintedV1(wall="n", dark=True))
    assert WALLS.encode(WALLS.decode(data)) == WALLS.encode(WALLS.decode(data))


def test_the_old_is_not_written() -> None:
    """A program that records a superseded type is told which one has taken its place."""
    old = PaintedV1(wall="n")
    for write in (WALLS.encode, WALLS.tag_of):
        with pytest.raises(
            NotWrittenError, match=r"wall.painted/1 is not recorded any more: record PaintedV2"
        ):
            write(old)


def test_strangers_are_not_written() -> None:
    """A type that could not be read again is not written."""
    for write in (encode, CODEC.tag_of):
        with pytest.raises(NotWrittenError, match="Built is not among the recorded types"):
            write(Built(wall="n"))


def test_the_tag_that_was_written_is_kept() -> None:
    """The log repeats the tag beside the bytes, and that of an old event stays the old one."""
    assert "wall.painted/1" == WALLS.recorded_tag(written(PaintedV1(wall="n")))


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\xc1",
        written({"event": "wall.painted/4", "wall": "n"}),
        written({"event": "wall.painted/1"}),
        written({"wall": "n"}),
        written(PaintedV2(wall="n", colour="no colour")),
    ],
)
def test_what_cannot_be_read_stops_the_reader(data: bytes) -> None:
    """
    Neither bytes of no type, nor of a later version, nor an event that its successor cannot express are passed over.
    """
    with pytest.raises(UnknownEventError, match="cannot read a recorded event"):
        WALLS.decode(data)


def test_a_later_type_is_told_of_as_such() -> None:
    """
    Who reads it hears that a newer version has recorded it, and what to do; a damaged one of today is just
    damaged.
    """
    with pytest.raises(UnknownEventError, match=r"wall\.painted/4.*newer one.*Nothing was changed; install"):
        WALLS.decode(written({"event": "wall.painted/4", "wall": "n"}))
    with pytest.raises(UnknownEventError) as damaged:
        WALLS.decode(written({"event": "wall.painted/1"}))
    assert "newer" not in str(damaged.value)


class NoWay(Superseded, frozen=True, tag="wall.lost/1"):
    def upcast(self) -> Built:
        return Built(wall="")


class Nameless(Event, frozen=True, tag="painted"):
    pass


class Round(Superseded, frozen=True, tag="wall.turned/1"):
    def upcast(self) -> "Round":
        return self


class Silent(Superseded, frozen=True, tag="wall.silent/1"):
    def upcast(self):  # type: ignore[no-untyped-def]  # noqa: ANN201 - this is what is refused
        return Built(wall="")


@pytest.mark.parametrize(
    ("current", "superseded", "says"),
    [
        ([Nameless], [], "the tag 'painted' is not noun.verb/N"),
        ([Built, Built], [], "two types have the tag 'wall.built/1'"),
        ([PaintedV2], [], "wall.painted/2 is superseded, and is in the codec as a type that is written"),
        ([Painted], [NoWay], "wall.lost/1 becomes Built, which is not in the codec"),
        ([Built], [Round], "wall.turned/1 is superseded in a circle"),
        ([Built], [Silent], "Silent.upcast does not say which event it returns"),
    ],
)
def test_types_that_could_not_be_read_are_refused(
    current: Sequence[type[Event]], superseded: Sequence[type[Superseded]], says: str
) -> None:
    """A codec of which some type would lead nowhere is not made at all."""
    with pytest.raises(ValueError, match=says):
        Codec[Event](current, superseded)


def test_the_newest_number_is_the_one_that_is_written() -> None:
    """A type cannot be superseded by one with a smaller number: two meanings would have one name."""

    class Older(Event, frozen=True, tag="wall.painted/1"):
        pass

    class Newer(Superseded, frozen=True, tag="wall.painted/2"):
        def upcast(self) -> Older:
            return Older()

    with pytest.raises(ValueError, match=r"wall.painted/1 is written, but there is wall.painted/2"):
        Codec[Event]([Older], [Newer])


def test_the_product_reads_what_it_writes() -> None:
    """Every type that is written has one tag, and is read by it."""
    assert [] == [tag for tag in CODEC.written if tag in CODEC.superseded]
    with pytest.raises(UnknownEventError):
        decode(written(Built(wall="n")))
