"""
Reading a job event log as it grows, in each of its forms, from where one stopped.

Light: who only counts what begins and ends loads nothing that reads ads, unless the log is in XML.
"""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO, Final, NamedTuple

import msgspec

from kettle.userlog.formats import Form
from kettle.userlog.framing import Block, Blocks, UserLogFormatError

_HEAD: Final = re.compile(r"\s*(\d{3}) \((-?\d{1,10})\.(-?\d{1,10})\.-?\d+\) (\S+ \S+) ?")
_BEGINNING: Final = 256
"""Bytes among which the first of a log stands that shows its form."""


class Heading(NamedTuple):
    """What all events say."""

    number: int
    cluster: int
    proc: int
    shown: str
    """When, as it stands in the log."""


class LogReader:
    """
    The events of a file from an offset on; what is not there as a whole comes later.

    `offset` is that behind the last event that was given, for another reader that is to go on there.
    """

    def __init__(self, path: Path, offset: int = 0) -> None:
        self._path = path
        self._lines: int | None = None if offset else 0
        """Before `offset`; None: nobody has counted them."""
        self.offset = offset

    def next(self) -> Block | None:
        """
        The event at `offset`, if all of it is there. Raises OSError, and UserLogFormatError for a log in several forms.
        """
        return next(self._events(), None)

    def all(self) -> list[Block]:
        """All events from `offset` on that are there; raises what `next` raises."""
        return list(self._events())

    def _events(self) -> Iterator[Block]:
        with self._path.open("rb") as file:
            form = Form.of(file.read(_BEGINNING).decode("utf-8", "replace")) if self.offset else None
            file.seek(self.offset)
            framing = Blocks(form, self._before(file))
            for line in file:
                if line.endswith(b"\n") and (block := framing.take(line)) is not None:
                    self.offset += block.size
                    self._lines = framing.lines
                    yield block

    def _before(self, file: BinaryIO) -> int:
        if self._lines is None:
            file.seek(0)
            self._lines = file.read(self.offset).count(b"\n")
        return self._lines


def heading(block: Block) -> Heading:
    """What an event is, when and of which job; raises UserLogFormatError for what is none."""
    try:
        match block.form:
            case Form.CLASSIC:
                return _of_line(block)
            case Form.JSON:
                return _of(msgspec.json.decode("\n".join(block.lines), type=_Head))
            case Form.XML:
                from kettle.classad.xml_reader import read_xml_ads

                ad = next(read_xml_ads("\n".join(block.lines))).to_wire()
                return _of(msgspec.convert(ad, _Head))
    except (StopIteration, ValueError) as error:
        raise UserLogFormatError(f"line {block.line}: this is no event: {error}") from error


class _Head(msgspec.Struct, rename="pascal"):
    event_type_number: int
    event_time: str
    cluster: int
    proc: int


def _of(head: _Head) -> Heading:
    return Heading(head.event_type_number, head.cluster, head.proc, head.event_time.replace("T", " "))


def _of_line(block: Block) -> Heading:
    found = _HEAD.match(block.lines[0]) if block.lines else None
    if found is None:
        raise ValueError("expected the first line of an event")
    return Heading(int(found[1]), int(found[2]), int(found[3]), found[4])
