"""
The states of a shard's streams, for a service that keeps one for each.

A stream is of a kind, its first word.  Each kind has a pure fold: state before (None: there was none), event, time of the frame
-> state after; None: nothing of the stream matters any more, and it is forgotten.
"""

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final, Generic, TypeVar

import msgspec

from kettle_wire.events import Event

_State = TypeVar("_State", bound=msgspec.Struct)
_encode: Final = msgspec.msgpack.Encoder().encode


class Streams(Generic[_State]):
    """The states of the streams of one kind, by what stands behind the first word."""

    def __init__(
        self, state: type[_State], fold: Callable[[_State | None, Any, float], _State | None]
    ) -> None:
        self.states: Final[dict[str, _State]] = {}
        self._decode = msgspec.msgpack.Decoder(state).decode
        self._fold = fold

    def apply(self, name: str, event: Event, at: float) -> _State | None:
        """Change a state as an event does, which was recorded at a time in seconds since the epoch."""
        state = self._fold(self.states.get(name), event, at)
        if state is None:
            self.states.pop(name, None)
        else:
            self.states[name] = state
        return state

    def restore(self, name: str, row: bytes) -> None:
        """Take a state from the working set."""
        self.states[name] = self._decode(row)


class StreamStates:
    """All that a service has recorded and needs for its next decision, by kinds of streams."""

    def __init__(self, kinds: Mapping[str, Streams[Any]]) -> None:
        self._kinds: Final = kinds

    def apply(self, stream: str, event: Event, at: float) -> bytes | None:
        """
        Change what an event changes; the row of its stream in the working set after it, None: there is none any more.
        """
        kind, _, name = stream.partition("/")
        state = self._kinds[kind].apply(name, event, at)
        return None if state is None else _encode(state)

    def restore(self, stream: str, row: bytes) -> None:
        """Take the state of a stream from the working set."""
        kind, _, name = stream.partition("/")
        self._kinds[kind].restore(name, row)

    def rows(self) -> Iterator[tuple[str, bytes]]:
        """All streams, each with its row in the working set."""
        for kind, streams in self._kinds.items():
            for name, state in streams.states.items():
                yield f"{kind}/{name}", _encode(state)
