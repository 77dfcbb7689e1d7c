"""Tasks from files: one command a line, or one value of JSON a line."""

import json
import shlex
from collections.abc import Callable
from typing import Final

import msgspec

from kettle_wire.task_queues import LONGEST_TASK, MOST_TASKS


class TasksError(Exception):
    """A file that has no tasks of which a queue can be made; the message says where and why."""


def read_tasks(data: bytes, source: str, *, as_json: bool = False) -> list[bytes]:
    """
    The tasks of a file, which `source` names: of each line one, but for empty lines and those that begin with `#`.

    `as_json`: each line is a text, or a list of words, which become one line for the shell; a text may have several lines.

    Raises TasksError.
    """
    read: Callable[[str], str] = _of_json if as_json else _of_line
    found: list[bytes] = []
    for number, line in enumerate(data.split(b"\n"), 1):
        if not line.strip() or (not as_json and line.lstrip().startswith(b"#")):
            continue
        try:
            text = read(line.decode()).encode()
            _require_sense(text)
        except ValueError as error:  # UnicodeDecodeError and JSONDecodeError are
            raise TasksError(f"{source}:{number}: {_sentence(error)}") from error
        found.append(text)
        if len(found) > MOST_TASKS:
            raise TasksError(
                f"{source}:{number}: a queue has {MOST_TASKS:,} tasks at most: make several of it"
            )
    if not found:
        raise TasksError(
            f"{source} has no tasks: each line is a command, but for empty ones and those that begin with #"
        )
    return found


def _of_line(line: str) -> str:
    return line.rstrip("\r")


def _of_json(line: str) -> str:
    try:
        value = msgspec.convert(json.loads(line), str | list[str])
    except msgspec.ValidationError as error:
        raise ValueError(_NO_TASK) from error
    if not value:
        raise ValueError(_NO_TASK)
    return value if isinstance(value, str) else shlex.join(value)


def _require_sense(text: bytes) -> None:
    if b"\0" in text:
        raise ValueError("there is a NUL character in it")
    if not text.strip():
        raise ValueError("the command is empty")
    if len(text) > LONGEST_TASK:
        raise ValueError(
            f"the command has {len(text):,} bytes, of which {LONGEST_TASK:,} are the most: put it into a script"
        )


def _sentence(error: ValueError) -> str:
    match error:
        case UnicodeDecodeError(start=start):
            return f"byte {start + 1} of the line is no UTF-8"
        case json.JSONDecodeError(msg=msg, colno=column):
            return f"that is no JSON: {msg} (column {column})"
        case _:
            return str(error)


_NO_TASK: Final = 'a task is a text, as "./fit 1", or a list of words, as ["./fit", "1"]'
