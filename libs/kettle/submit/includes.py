"""
What comes into a description from elsewhere: other files, what programs print, and templates of the pool.

    include : FILE                          include ifexist : FILE
    include : COMMAND |                     include command : COMMAND
    include command into CACHE : COMMAND    the command is run if there is no file CACHE yet
    use template : NAME(ARGUMENT, ...)      the knob SUBMIT_TEMPLATE_NAME, with $(1), $(2), ... as its arguments
"""

import contextlib
import os
import re
import shlex
import signal
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import IO, Final

from kettle.submit.errors import PlacelessError

MOST_NESTED: Final = 20
"""Sources inside of each other."""
_HOW: Final = re.compile(r"(ifexist)?\s*(?:(command)(?:\s+into\s+(\S+))?)?", re.IGNORECASE)
_TEMPLATE: Final = re.compile(r"([A-Za-z_][A-Za-z0-9_]*)\s*(?:\(([^()]*)\))?\s*(?:,|$)\s*")
_ARGUMENT: Final = re.compile(r"\$\((\d)(\?|#|\+)?(?::([^()]*))?\)")
_SHOWN: Final = 300

NO_PROGRAMS: Final = "'{}' is not run here: put what it prints into a file, and name that"
MOST_BYTES: Final = 64 << 20
"""In what a description reads from elsewhere: a device or a program may give any number of them."""
LONGEST: Final = 300.0
"""Seconds for a program that prints a part of a description."""

Sources = Iterator[tuple[str, str]]
"""How errors call a source, and its text."""


def included(how: str, what: str, *, cwd: Path, environ: Mapping[str, str], programs: bool = True) -> Sources:
    """
    The text of an `include` statement; `how` stands before its colon, `what` behind; `programs`: whether one may be run.

    Raises PlacelessError.
    """
    match = _HOW.fullmatch(how)
    if match is None:
        raise PlacelessError(
            f"'include {how}' is not understood: write include : FILE, include ifexist : FILE or include command : COMMAND"
        )
    if not what.removesuffix("|").strip():
        raise PlacelessError("include needs the name of a file, or a command")
    if match[2] or what.endswith("|"):
        command = what.removesuffix("|").strip()
        if not programs:
            raise PlacelessError(NO_PROGRAMS.format(command))
        yield command, _cached(command, match[3], cwd=cwd, environ=environ)
        return
    path = cwd / what
    try:
        yield what, read_bounded(path)
    except FileNotFoundError as error:
        if not match[1]:
            raise PlacelessError(f"cannot include {what}: there is no such file") from error
    except OSError as error:
        raise PlacelessError(f"cannot include {what}: {error.strerror}") from error


def _cached(command: str, cache: str | None, *, cwd: Path, environ: Mapping[str, str]) -> str:
    if cache is None:
        return printed(command, cwd=cwd, environ=environ)
    path = cwd / cache
    try:
        if path.exists():
            return read_bounded(path)
        text = printed(command, cwd=cwd, environ=environ)
        path.write_text(text, encoding="utf-8", errors="surrogateescape")
    except OSError as error:
        raise PlacelessError(f"the file {cache} for what is included: {error.strerror}") from error
    return text


def printed(command: str, *, cwd: Path, environ: Mapping[str, str], longest: float = LONGEST) -> str:
    """
    What a command of the submitter prints, which no shell looks at.  Raises PlacelessError, also if it fails or takes
    more than `longest` seconds.
    """
    import subprocess  # rarely needed, and commands are to start fast
    import tempfile
    from threading import Timer

    with tempfile.TemporaryFile() as complaints:
        try:
            program = subprocess.Popen(
                shlex.split(command),
                cwd=cwd,
                env=dict(environ),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=complaints,
                start_new_session=True,
            )
        except (OSError, ValueError) as error:
            why = error.strerror if isinstance(error, OSError) else str(error)
            raise PlacelessError(f"cannot run '{command}': {why}") from error
        late = Timer(longest, _end, [program.pid])
        late.start()
        try:
            assert program.stdout is not None
            text = _bounded(program.stdout, f"'{command}' prints")
        except BaseException:
            _end(program.pid)
            raise
        finally:
            program.communicate()
            in_time = late.is_alive()
            late.cancel()
        if not in_time:
            raise PlacelessError(f"'{command}' was ended: it took more than {longest:g} seconds")
        if program.returncode:
            complaints.seek(0)
            said = complaints.read(_SHOWN).decode(errors="replace").strip().replace("\n", "; ")
            raise PlacelessError(
                f"'{command}' failed with exit code {program.returncode}{f': {said}' if said else ''}"
            )
    return text.decode("utf-8", "surrogateescape")


def _end(group: int) -> None:
    """End a program and what it has started, as far as they are there."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(group, signal.SIGKILL)


def read_bounded(path: Path) -> str:
    """The text of a file, which may be a device that never ends.  Raises OSError, PlacelessError."""
    with path.open("rb") as file:
        return _bounded(file, f"{path} has").decode("utf-8", "surrogateescape")


def _bounded(file: IO[bytes], subject: str) -> bytes:
    content = file.read(MOST_BYTES + 1)
    if len(content) > MOST_BYTES:
        raise PlacelessError(f"{subject} more than {MOST_BYTES >> 20} MiB")
    return content


def used(category: str, names: str, templates: Callable[[str], str | None]) -> Sources:
    """The templates that a `use` statement names, one after the other.  Raises PlacelessError."""
    if category.lower() != "template":
        raise PlacelessError(f"'use {category}' is not for submit descriptions: write use template : NAME")
    position = 0
    while position < len(names):
        match = _TEMPLATE.match(names, position)
        if match is None:
            raise PlacelessError(f"'{names[position:]}' is no name of a template, as NAME or NAME(ARGUMENT)")
        position = match.end()
        text = templates(match[1])
        if text is None:
            raise PlacelessError(f"there is no template {match[1]}; set the knob SUBMIT_TEMPLATE_{match[1]}")
        yield f"template {match[1]}", with_arguments(text, match[2] or "")
    if not names:
        raise PlacelessError("use template needs the name of one")


def with_arguments(text: str, given: str) -> str:
    """
    A template with its arguments: `$(1)`, `$(1:DEFAULT)`; `$(0)` all of them, `$(2+)` the second and all after it,
    `$(0#)` how many there are, `$(1?)` 1 if there is a first one, else 0.
    """
    words = [word.strip() for word in given.split(",")] if given.strip() else []

    def argument(found: re.Match[str]) -> str:
        number, how, default = int(found[1]), found[2], found[3]
        if how == "#":
            return str(len(words))
        own = words[number - 1] if 0 < number <= len(words) else ""
        if number == 0 or how == "+":
            own = ", ".join(words[max(number - 1, 0) :])
        if how == "?":
            return "1" if own else "0"
        return own or default or ""

    return _ARGUMENT.sub(argument, text)
