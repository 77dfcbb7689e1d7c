"""Recorded bytes to events and back, with the types that were superseded lifted to their successors."""

import re
from collections.abc import Callable, Container, Mapping, Sequence
from typing import Any, Final, Generic, TypeVar, cast, get_args, get_type_hints

import msgspec

from kettle_wire.events.base import Event, Superseded
from kettle_wire.events.batch import BatchEvent
from kettle_wire.events.claim import ClaimEvent
from kettle_wire.events.cluster import ClustersSubmitted, ClusterSubmitted, FactorySubmitted
from kettle_wire.events.cycle import CycleNegotiated
from kettle_wire.events.factory import FactoryEvent
from kettle_wire.events.host import HostEvent
from kettle_wire.events.iam import IdentityEvent
from kettle_wire.events.interactive import InteractiveEvent
from kettle_wire.events.job import JobCompletedV1, JobEvent, JobVacatedV1
from kettle_wire.events.lease import BreakerEvent, LeaseEvent, OrphanEvent
from kettle_wire.events.machine import CollectorEvent
from kettle_wire.events.many_jobs import JobsChanged
from kettle_wire.events.payload import PayloadEvent
from kettle_wire.events.plan import PlanMade
from kettle_wire.events.pool import PoolEvent
from kettle_wire.events.principal import PrincipalEvent
from kettle_wire.events.route import RouteEvent
from kettle_wire.events.task_queue import TaskQueueEvent
from kettle_wire.events.workflow import WorkflowEvent

Recorded = (
    ClusterSubmitted
    | ClustersSubmitted
    | FactorySubmitted
    | FactoryEvent
    | JobEvent
    | JobsChanged
    | ClaimEvent
    | CycleNegotiated
    | CollectorEvent
    | PrincipalEvent
    | IdentityEvent
    | WorkflowEvent
    | LeaseEvent
    | OrphanEvent
    | BreakerEvent
    | HostEvent
    | PlanMade
    | PoolEvent
    | BatchEvent
    | RouteEvent
    | PayloadEvent
    | InteractiveEvent
    | TaskQueueEvent
)

EVENT_TYPES: Final[tuple[type[Event], ...]] = get_args(Recorded)
"""What is written."""

SUPERSEDED_TYPES: Final[tuple[type[Superseded], ...]] = (JobCompletedV1, JobVacatedV1)
"""
What was written once: see docs/explanation/event-evolution.md. Types are added here and never taken away.
"""

E = TypeVar("E", bound=Event)
_TAG: Final = re.compile(r"([a-z]+\.[a-z_]+)/([1-9]\d*)")


class UnknownEventError(Exception):
    """Bytes in the log that this version cannot read: stop, never skip."""


class NotWrittenError(TypeError):
    """A type of event that nobody records: superseded, or not in the codec. A mistake in the program."""


class _Tagged(msgspec.Struct, frozen=True):
    event: str


class Codec(Generic[E]):
    """
    Reads and writes one set of event types. An old one is lifted to the newest; only that costs anything.

    Raises ValueError, when it is made, for types of which some could not be read as one that is written.
    """

    def __init__(self, current: Sequence[type[Event]], superseded: Sequence[type[Superseded]] = ()) -> None:
        self._written: Mapping[type[Event], str] = {kind: _tag(kind) for kind in current}
        self._superseded = tuple(superseded)
        self._check_tags([*map(_tag, current), *map(_tag, superseded)])
        self._check_ways()
        self._decode_any = _decoder([*current, *superseded])
        self.decode: Final[Callable[[bytes], E]] = _reading(_decoder(current), self._lifted)
        """Read an event, as the newest type that says it; raises UnknownEventError for what is not one."""
        self.encode: Final[Callable[[Event], bytes]] = _writing(self._written, self._refusal)
        """The bytes of an event, tag included; raises NotWrittenError for what is not recorded any more."""
        self._read_tag = msgspec.msgpack.Decoder(_Tagged).decode

    @property
    def written(self) -> Mapping[str, type[Event]]:
        """The types that are recorded today, by their tags."""
        return {tag: kind for kind, tag in self._written.items()}

    @property
    def superseded(self) -> Mapping[str, type[Superseded]]:
        """The types that are only read, by their tags."""
        return {_tag(kind): kind for kind in self._superseded}

    def tag_of(self, event: Event) -> str:
        """The tag `noun.verb/N` of an event; raises NotWrittenError for what is not recorded any more."""
        try:
            return self._written[type(event)]
        except KeyError:
            raise NotWrittenError(self._refusal(event)) from None

    def recorded_tag(self, data: bytes) -> str:
        """The tag that an event was written with, which the log has beside it; raises UnknownEventError."""
        try:
            return self._read_tag(data).event
        except msgspec.MsgspecError as error:
            raise UnknownEventError(f"cannot read the type of a recorded event: {error}") from error

    def _lifted(self, data: bytes) -> E:
        try:
            event = self._decode_any(data)
            while isinstance(event, Superseded):
                event = event.upcast()
        except (msgspec.MsgspecError, ArithmeticError, LookupError, TypeError, ValueError) as error:
            raise UnknownEventError(self._unread(data, error)) from error
        return cast("E", event)  # every way was followed to its end when the codec was made

    def _unread(self, data: bytes, error: Exception) -> str:
        """Why an event cannot be read, and what to do if it is of a type that comes later."""
        try:
            tag = self._read_tag(data).event
        except msgspec.MsgspecError:
            tag = ""
        if not _TAG.fullmatch(tag) or tag in self.written or tag in self.superseded:
            return f"cannot read a recorded event: {error}"
        return (
            f"cannot read a recorded event: its type is {tag}, which this version of Kettle does not know: a newer one has "
            f"recorded it.  Nothing was changed; install the newer version here (kettle upgrade check)"
        )

    def _refusal(self, event: Event) -> str:
        kind = type(event)
        if kind in self._superseded:
            return f"{_tag(kind)} is not recorded any more: record {successor_of(kind).__name__}"
        return f"{kind.__name__} is not among the recorded types: add it to kettle_wire.events.codec"

    def _check_tags(self, tags: list[str]) -> None:
        newest: dict[str, int] = {}
        for tag in tags:
            shape = _TAG.fullmatch(tag)
            if shape is None:
                raise ValueError(f"the tag {tag!r} is not noun.verb/N")
            if tags.count(tag) > 1:
                raise ValueError(f"two types have the tag {tag!r}")
            newest[shape[1]] = max(newest.get(shape[1], 0), int(shape[2]))
        for tag in self._written.values():
            name, _, number = tag.partition("/")
            if newest[name] != int(number):
                raise ValueError(f"{tag} is written, but there is {name}/{newest[name]}")

    def _check_ways(self) -> None:
        """
        Every superseded type leads to one that is written, and those that are written are not superseded.
        """
        for kind, tag in self._written.items():
            if issubclass(kind, Superseded):
                raise ValueError(f"{tag} is superseded, and is in the codec as a type that is written")  # noqa: TRY004 - as below
        for start in self._superseded:
            way: list[type[Event]] = [start]
            while way[-1] in self._superseded:
                successor = successor_of(way[-1])
                if successor in way:
                    raise ValueError(f"{_tag(start)} is superseded in a circle: {way}")
                way.append(successor)
            if way[-1] not in self._written:
                raise ValueError(f"{_tag(start)} becomes {way[-1].__name__}, which is not in the codec")


def _reading(current: Callable[[bytes], E], lifted: Callable[[bytes], E]) -> Callable[[bytes], E]:
    """A function instead of a method, and no look at what came out: replay calls it for each event."""

    def decode(data: bytes) -> E:
        try:
            return current(data)
        except msgspec.MsgspecError:
            return lifted(data)

    return decode


def _writing(written: Container[type[Event]], refusal: Callable[[Event], str]) -> Callable[[Event], bytes]:
    encoded = msgspec.msgpack.Encoder().encode

    def encode(event: Event) -> bytes:
        if type(event) in written:
            return encoded(event)
        raise NotWrittenError(refusal(event))

    return encode


def _decoder(kinds: Sequence[type[Event]]) -> Callable[[bytes], Any]:
    union: Any = kinds[0]
    for kind in kinds[1:]:
        union |= kind
    return msgspec.msgpack.Decoder(union).decode


def _tag(kind: type[Event]) -> str:
    return str(kind.__struct_config__.tag)


def successor_of(kind: type[Event]) -> type[Event]:
    """What a superseded type becomes, one step newer; raises ValueError if its `upcast` does not say."""
    successor = get_type_hints(vars(kind).get("upcast")).get("return")
    if not (isinstance(successor, type) and issubclass(successor, Event)):
        raise ValueError(f"{kind.__name__}.upcast does not say which event it returns")  # noqa: TRY004 - not a wrong argument
    return successor


CODEC: Final = Codec[Recorded](EVENT_TYPES, SUPERSEDED_TYPES)
"""The one that everything that is ever recorded goes through."""

decode = CODEC.decode
encode = CODEC.encode
tag_of = CODEC.tag_of
recorded_tag = CODEC.recorded_tag
