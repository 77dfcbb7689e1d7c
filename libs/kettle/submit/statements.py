"""
Text to statements: lines joined, comments dropped, conditionals decided.

A description is read from top to bottom once; what a queue statement sees is a snapshot of the assignments before it.
"""

import random
import re
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Final

import msgspec

from kettle.jobs.lines import joined, lines_of
from kettle.submit import commands
from kettle.submit.conditions import Conditions
from kettle.submit.errors import PlacelessError, SubmitError
from kettle.submit.includes import MOST_NESTED, included, used
from kettle.submit.macros import LONGEST, Expander, names_used, substitute_self
from kettle.submit.queue_statement import Iteration, read_iteration

_ASSIGNMENT: Final = re.compile(r"(\+?)([A-Za-z0-9_.]+)\s*=(?!=)\s*(.*)", re.DOTALL)
_TAGGED: Final = re.compile(r"(\+?)([A-Za-z0-9_.]+)\s*@=\s*(\S+)\s*")
_QUEUE: Final = re.compile(r"queue(?:\s+|(?=\()|$)(.*)", re.IGNORECASE | re.DOTALL)
_CONDITIONAL: Final = re.compile(r"(if|elif|else|endif)(?:\s+(.*)|\s*)", re.IGNORECASE)
_STATEMENT: Final = re.compile(r"@?(include|use|error|warning)\b\s*([^:=]*?)\s*:\s*(.*)", re.IGNORECASE)
_NAME: Final = re.compile(r"[A-Za-z0-9_.]+")
_ATTRIBUTE: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
NOT_TEXT: Final = re.compile(r"[\0\ud800-\udfff]")
"""What bytes that are not UTF-8 are read as, and halves of characters."""
_SHOWN: Final = 60


class Assignment(msgspec.Struct, frozen=True):
    """`name = text`, not yet expanded; `line` is None for what was given beside the description."""

    name: str
    text: str
    source: str
    line: int | None
    of_row: bool = False
    """The name is a variable of the queue statement, so the text is another one for each item."""
    automatic: bool = False
    """Nobody wrote it."""

    def refused(self, sentence: str) -> SubmitError:
        """The error that this assignment gave rise to."""
        return SubmitError(sentence, source=self.source, line=self.line)


class Queue(msgspec.Struct, frozen=True):
    """One queue statement, with the assignments (by lower-case name) as they stood there."""

    source: str
    line: int
    assignments: Mapping[str, Assignment]
    iteration: Iteration

    def refused(self, sentence: str) -> SubmitError:
        """The error that this statement gave rise to."""
        return SubmitError(sentence, source=self.source, line=self.line)


class Description(msgspec.Struct, frozen=True):
    """
    A submit description, read; `kettle.submit.expansion` says which of its queue statements make a cluster together.
    """

    source: str
    cwd: Path
    environ: Mapping[str, str]
    queues: tuple[Queue, ...]
    entropy: random.Random
    """Where `$RANDOM_CHOICE` and `$RANDOM_INTEGER` draw from."""
    warnings: tuple[str, ...] = ()
    """The warnings of the description for the submitter."""
    seen: frozenset[str] = frozenset()
    """Names that were of use while it was read, in lower case."""
    tolerant: bool = False
    """Commands without effect where they stand are told of, and not refused."""


class Reader:
    """Reads one description; `read` may be called once."""

    def __init__(
        self,
        text: str,
        *,
        source: str,
        cwd: Path,
        environ: Mapping[str, str],
        given: Mapping[str, str],
        automatic: Mapping[str, str],
        entropy: random.Random,
        tolerant: bool = False,
        templates: Callable[[str], str | None] = lambda _name: None,
        programs: bool = True,
    ) -> None:
        self._programs = programs
        self._lines = lines_of(text)
        self._next = 0
        self._source = source
        self._depth = 0
        self._templates = templates
        self._warnings: list[str] = []
        self._cwd = cwd
        self._environ = environ
        self._entropy = entropy
        self._tolerant = tolerant
        self._automatic = {
            name.lower(): Assignment(name, text, source, None, automatic=True)
            for name, text in automatic.items()
        }
        self._assigned: dict[str, Assignment] = {
            name.lower(): Assignment(name, text, "command line", None) for name, text in given.items()
        }
        self._all: list[Assignment] = list(self._assigned.values())
        self._used: set[str] = set()
        self._seen: set[str] = set()
        self._queues: list[Queue] = []
        self._conditions = Conditions()

    def read(self) -> Description:
        """The whole description; raises SubmitError."""
        for given in self._all:
            if NOT_TEXT.search(given.text):
                raise given.refused(f"the value of {given.name} is not text in UTF-8")
        self._read()
        self._refuse_unknown()
        if not self._queues:
            raise SubmitError("there is no queue statement, so there is no job", source=self._source)
        return Description(
            self._source,
            self._cwd,
            self._environ,
            tuple(self._queues),
            self._entropy,
            tuple(self._warnings),
            frozenset(self._seen),
            self._tolerant,
        )

    def _refuse_unknown(self) -> None:
        """Refuse names that are neither commands nor used as macros, where that is not tolerated."""
        for assignment in self._all:
            known = commands.is_known(assignment.name) or assignment.name.lower() in self._used
            if not known and not (self._tolerant and commands.may_be_left_out(assignment.name)):
                raise assignment.refused(commands.complaint(assignment.name, self._used))

    def _read(self) -> None:
        """The lines of one source; an `if` that it opens it closes."""
        outer = self._conditions.depth
        while (logical := self._logical()) is not None:
            line, text = logical
            if NOT_TEXT.search(text):
                raise self._error("this is not text in UTF-8; is it a submit file?", line)
            try:
                self._statement(line, text)
                if self._conditions.depth < outer:
                    raise self._error(f"{text.split()[0]} without an if before it", line)
            except PlacelessError as error:
                raise self._error(str(error), line) from error
        if self._conditions.depth > outer:
            raise self._error("this if has no endif", self._conditions.opened or 0)

    def _error(self, sentence: str, line: int) -> SubmitError:
        return SubmitError(sentence, source=self._source, line=line)

    def _logical(self) -> tuple[int, str] | None:
        """The next line that says something, continuations joined, with the number of its first line."""
        while (text := self._physical()) is not None:
            line = self._next
            text = text.strip()
            if not text or text.startswith("#"):
                continue
            return line, joined(text, self._physical)
        return None

    def _physical(self) -> str | None:
        if self._next >= len(self._lines):
            return None
        self._next += 1
        return self._lines[self._next - 1]

    def _statement(self, line: int, text: str) -> None:
        if conditional := _CONDITIONAL.fullmatch(text):
            word, condition = conditional[1].lower(), conditional[2] or ""
            self._used.update(names_used(condition), _NAME.findall(condition.lower()))
            self._conditions.read(word, condition, line, self._expander)
        elif tagged := _TAGGED.fullmatch(text):
            self._assign(line, tagged[1] + tagged[2], self._until(f"@{tagged[3]}", line))
        elif not self._conditions.active:
            return
        elif queue := _QUEUE.fullmatch(text):
            self._queue(line, queue[1])
        elif statement := _STATEMENT.fullmatch(text):
            self._other(line, statement[1].lower(), statement[2], statement[3])
        elif assignment := _ASSIGNMENT.fullmatch(text):
            self._assign(line, assignment[1] + assignment[2], assignment[3].strip())
        else:
            raise self._error(
                f"'{_shortened(text)}' is neither NAME = VALUE nor a queue statement; a comment stands on a line of its own",
                line,
            )

    def _until(self, end: str, line: int) -> str:
        lines: list[str] = []
        while (text := self._physical()) is not None:
            if text.strip() == end:
                return "\n".join(lines)
            lines.append(text)
        raise self._error(f"the value has no end: expected a line {end}", line)

    def _assign(self, line: int, name: str, text: str) -> None:
        if not self._conditions.active:
            return
        name = commands.CUSTOM.upper() + name[1:] if name.startswith("+") else name
        own = name[len(commands.CUSTOM) :] if name.lower().startswith(commands.CUSTOM) else None
        if own is not None and not _ATTRIBUTE.fullmatch(own):
            raise self._error(f"'{own}' is not the name of an attribute", line)
        self._used.update(
            names_used(text) if name.lower() not in names_used(text) else self._others(name, text)
        )
        current = self._assigned.get(name.lower())
        written, text = text, substitute_self(name, text, current.text if current else "")
        if written != text:
            self._seen.add(name.lower())
        if len(text) > LONGEST:
            raise self._error(f"{name} becomes longer than {LONGEST:,} characters", line)
        assignment = Assignment(name, text, self._source, line)
        self._assigned[name.lower()] = assignment
        self._all.append(assignment)

    @staticmethod
    def _others(name: str, text: str) -> Iterable[str]:
        return (used for used in names_used(text) if used != name.lower())

    def _other(self, line: int, word: str, how: str, text: str) -> None:
        self._used.update(names_used(text))
        said = self._expander().expand(text).strip()
        match word:
            case "error":
                raise self._error(f"the description says: {said}", line)
            case "warning":
                self._warnings.append(f"{self._source}, line {line}: {said}")
            case "include":
                for source, lines in included(
                    how, said, cwd=self._cwd, environ=self._environ, programs=self._programs
                ):
                    self._within(line, source, lines)
            case _:
                for source, lines in used(how, said, self._templates):
                    self._within(line, source, lines)

    def _within(self, line: int, source: str, text: str) -> None:
        """
        Go on in another source, and come back at its end; a list or a value does not go on across its end.
        """
        if self._depth == MOST_NESTED:
            raise self._error(
                f"more than {MOST_NESTED} sources include each other; does one include itself?", line
            )
        lines, following, outer = self._lines, self._next, self._source
        self._lines, self._next, self._source = lines_of(text), 0, source
        self._depth += 1
        self._read()
        self._depth -= 1
        self._lines, self._next, self._source = lines, following, outer

    def _expander(self) -> Expander:
        table = {key: found.text for key, found in (self._automatic | self._assigned).items()}
        expander = Expander(table, self._environ, entropy=self._entropy, longest=LONGEST)
        expander.seen = self._seen
        return expander

    def _queue(self, line: int, text: str) -> None:
        self._used.update(names_used(text))
        iteration = read_iteration(
            self._expander().expand(text),
            cwd=self._cwd,
            more=self._physical,
            environ=self._environ,
            programs=self._programs,
        )
        self._warnings += iteration.warnings
        for row in iteration.rows if iteration.inline else ():
            for value in row.values:
                self._used.update(names_used(value))
        self._queues.append(Queue(self._source, line, self._automatic | self._assigned, iteration))


def _shortened(text: str) -> str:
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}..."
