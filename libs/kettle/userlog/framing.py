"""
Where one event of a log ends and the next begins, in each of the three forms.

Light: who only counts events loads nothing that reads ads.
"""

from collections.abc import Iterator
from io import BytesIO
from typing import Final, NamedTuple

from kettle.userlog.formats import Form

ENDS: Final = {Form.CLASSIC: "...", Form.XML: "</c>", Form.JSON: "}"}
"""The last line of an event."""
_AROUND: Final = ("<?xml", "<!DOCTYPE", "<classads>", "</classads>")
"""What may stand around the events of a log in XML."""


class UserLogFormatError(ValueError):
    """The text is not a job event log; the message says in which line."""


class Block(NamedTuple):
    """One event as it stands."""

    line: int
    """The number of its first line."""
    form: Form
    lines: list[str]
    """Without line ends; of the classic form without the last one."""
    size: int
    """Bytes, with what stands before it."""

    @property
    def text(self) -> str:
        """As it stands, to its end."""
        last = [ENDS[Form.CLASSIC]] if self.form is Form.CLASSIC else []
        return "".join(f"{line}\n" for line in (*self.lines, *last))


class Blocks:
    """
    Takes lines, gives whole events.

    A log has one form, that of its first event: of a log in several nobody can say where an event ends.
    """

    def __init__(self, form: Form | None = None, lines: int = 0) -> None:
        """`form`: that of what was read before, None if nothing was; `lines`: how many these were."""
        self._form = form
        self._number = lines
        self._first = 0
        self._lines: list[str] = []
        self._size = 0

    @property
    def form(self) -> Form | None:
        """The form of the log, None as long as it is not known."""
        return self._form

    @property
    def lines(self) -> int:
        """How many there have been."""
        return self._number

    def take(self, raw: bytes) -> Block | None:
        """
        Take one line with its end; the event that it completes.

        Raises UserLogFormatError for an event in another form than those before.
        """
        self._number += 1
        self._size += len(raw)
        line = raw.decode("utf-8", "surrogateescape").rstrip("\r\n")
        if not self._lines and (not line or (self._form is not Form.CLASSIC and line.startswith(_AROUND))):
            return None
        if not self._lines:
            self._first = self._number
        if line[:1] in {"<", "{"} or not self._lines:
            self._expect(Form.of(line))
        assert self._form is not None
        if self._form is Form.CLASSIC and line == ENDS[Form.CLASSIC]:
            return self._whole()
        self._lines.append(line)
        alone = len(self._lines) == 1 and line.startswith(("<c>", "{"))
        if self._form is not Form.CLASSIC and (
            line == ENDS[self._form] or (alone and line.endswith(ENDS[self._form]))
        ):
            return self._whole()
        return None

    def _expect(self, found: Form) -> None:
        if self._form is None:
            self._form = found
        if self._form is not found:
            known = {Form.CLASSIC: "the classic form"}
            was, now = (known.get(form, str(form)) for form in (self._form, found))
            raise UserLogFormatError(
                f"line {self._number}: this is in {now}, and what stands before it is in {was}; a log has one form: "
                "let the jobs that write it agree on log_xml, or give them logs of their own"
            )

    def _whole(self) -> Block:
        block = Block(self._first, self._form or Form.CLASSIC, self._lines, self._size)
        self._lines, self._size = [], 0
        return block


def blocks(text: str) -> Iterator[Block]:
    """The whole events of a text. Raises UserLogFormatError."""
    framing = Blocks()
    for line in BytesIO(text.encode("utf-8", "surrogateescape")):
        if line.endswith(b"\n") and (block := framing.take(line)) is not None:
            yield block
