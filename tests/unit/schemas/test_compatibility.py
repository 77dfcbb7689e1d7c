"""What a published struct may become without a new version."""

import itertools
from typing import Any

import msgspec
import pytest

from kettle.schema_generation import Document, incompatible
from kettle.schema_generation.catalogue import event_schemas
from kettle_wire.events import Event, Superseded
from kettle_wire.events.codec import Codec

Fields = list[Any]

INSIDE: Fields = [("x", int), ("y", float, 0.0)]


_numbers = itertools.count()


def inside(*fields: Any, **options: Any) -> type[msgspec.Struct]:
    return msgspec.defstruct(
        f"Inside{next(_numbers)}", list(fields), frozen=True, kw_only=True, omit_defaults=True, **options
    )


def event(*fields: Any, name: str = "Done", tag: str = "thing.done/1") -> type[Event]:
    kind = msgspec.defstruct(name, list(fields), bases=(Event,), tag=tag, frozen=True, kw_only=True)
    assert issubclass(kind, Event)
    return kind


def of(*kinds: type[Event], superseded: tuple[type[Superseded], ...] = ()) -> dict[str, Document]:
    return event_schemas(Codec[Event](kinds, superseded))


ONE = inside(*INSIDE)
PUBLISHED: Fields = [
    ("a", int),
    ("b", str, "nothing"),
    ("c", ONE),
    ("d", dict[str, ONE], msgspec.field(default_factory=dict)),  # type: ignore[valid-type]
    ("e", list[int | str], msgspec.field(default_factory=list)),
]


def but(name: str, *field: Any) -> Fields:
    return [field if each[0] == name else each for each in PUBLISHED if each[0] != name or field]


@pytest.mark.parametrize(
    ("fields", "says"),
    [
        (but("a"), "a is gone"),
        (but("a", "renamed", int), "a is gone"),
        (but("a", "a", str), 'a had type "integer", and now "string"'),
        (but("a", "a", float), 'a had type "integer", and now "number"'),
        (but("a", "a", int, 0), "a was always there and may now be absent"),
        (but("b", "b", str), "b is required now"),
        (but("b", "b", str, "something"), 'b had default "nothing", and now "something"'),
        (but("b", "b", str | None, "nothing"), "b had "),
        ([*PUBLISHED, ("f", int)], "f is required now"),
        (but("c", "c", inside(*INSIDE, ("z", int))), "c.z is required now"),
        (but("c", "c", inside(INSIDE[0])), "c.y is gone"),
        (but("c", "c", inside(INSIDE[0], ("y", float, 1.0))), "c.y had default 0.0, and now 1.0"),
        (but("c", "c", inside(*INSIDE, array_like=True)), 'c had type "object", and now "array"'),
        (but("c", "c", inside(*INSIDE, forbid_unknown_fields=True)), "c{} was true and is false"),
        (
            but("d", "d", dict[str, inside(("x", str))], msgspec.field(default_factory=dict)),  # type: ignore[misc]
            'd{}.x had type "integer", and now "string"',
        ),
        (
            but("e", "e", list[int | str | None], msgspec.field(default_factory=list)),
            "e[] had 2 kinds of value and has 3",
        ),
        (
            but("e", "e", list[bool | str], msgspec.field(default_factory=list)),
            'e[] had type "integer", and now "boolean"',
        ),
    ],
)
def test_a_published_type_keeps_its_meaning(fields: Fields, says: str) -> None:
    """
    A field that is removed, renamed, retyped, newly required or has another default is a failure that says what to do.
    """
    [first, *_] = found = incompatible(of(event(*PUBLISHED)), of(event(*fields)))
    assert any(f"thing.done/1: {says}" in one for one in found), found
    assert "leave thing.done/1 as it was, add thing.done/2, and give thing.done/1 a method upcast" in first


@pytest.mark.parametrize(
    "now",
    [
        event(*PUBLISHED),
        event(*PUBLISHED, ("f", int, 0)),
        event(*reversed(PUBLISHED)),
        event(*but("c", "c", inside(*INSIDE, ("z", int, 0)))),
        event(*but("c", "c", inside(*INSIDE)), name="CalledOtherwise"),
    ],
)
def test_what_may_be_absent_may_be_added(now: type[Event]) -> None:
    """A field with a default is no new meaning, nor is another name in the program."""
    assert [] == incompatible(of(event(*PUBLISHED)), of(now))


def test_a_type_more_is_no_change() -> None:
    """New types may be published at any time."""
    assert [] == incompatible(of(event(*PUBLISHED)), of(event(*PUBLISHED), event(tag="thing.undone/1")))


def test_a_published_type_is_never_taken_away() -> None:
    """A version more does not replace the one before: that is in the log."""
    newer = event(*PUBLISHED, ("f", int), name="DoneV2", tag="thing.done/2")
    [problem] = incompatible(of(event(*PUBLISHED)), of(newer))
    assert problem.startswith("thing.done/1: it is gone; ")


class Kept(Event, frozen=True, tag="thing.kept/2"):
    a: int
    f: int


class KeptV1(Superseded, frozen=True, tag="thing.kept/1"):
    a: int

    def upcast(self) -> Kept:
        return Kept(a=self.a, f=0)


def test_superseding_is_the_way() -> None:
    """With the old type kept beside its successor, a change of any kind is clean."""
    before = of(event(("a", int), tag="thing.kept/1"))
    assert [] == incompatible(before, of(Kept, superseded=(KeptV1,)))


def test_appended_items_of_arrays() -> None:
    """An array may get an item at its end that may be absent, and none in its middle."""
    old = {"frames/frame.json": {"title": "frame", "prefixItems": [{"type": "string"}], "minItems": 1}}
    more = {"prefixItems": [{"type": "string"}, {"type": "integer"}]}
    assert [] == incompatible(old, {"frames/frame.json": {"title": "frame", **more, "minItems": 1}})
    [longer] = incompatible(old, {"frames/frame.json": {"title": "frame", **more, "minItems": 2}})
    assert "had minItems 1, and now 2" in longer
    [other] = incompatible(old, {"frames/frame.json": {"prefixItems": [{"type": "integer"}], "minItems": 1}})
    assert 'frame: [0] had type "string", and now "integer"; it is read by programs' in other
