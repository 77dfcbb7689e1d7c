"""
What `/proc` shows of a forked process: the command line and the environment of the service that it is.

Both lie where the kernel has put them when the program was executed, one after the other, and are read from there by
everybody who looks.  Programs that people find in `ps`, and the mark by which a pool's processes are found, are to be the same
whether a service was forked or executed; so they are written there.  PostgreSQL names its processes in the same way.
"""

import ctypes
import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

PROGRAM: Final = "kettle_services.master.zygote"
"""A process that was forked from a zygote, by it or by a master that was forked itself, finds this in `sys.orig_argv`."""

ROOM: Final = "_KETTLE_ROOM"
ROOM_BYTES: Final = 8192
"""By how much the environment of a service may be longer than that of the zygote, to be shown whole."""

_ARGUMENTS, _ARGUMENTS_END, _ENVIRONMENT, _ENVIRONMENT_END = 45, 46, 47, 48
"""Places in `/proc/PID/stat`, counted after the command (proc(5): fields 48 to 51)."""


def room() -> dict[str, str]:
    """The variable that makes room, for the environment of a process that is to show another one later."""
    return {ROOM: "x" * ROOM_BYTES}


def show(words: Sequence[str], environ: Mapping[bytes, bytes]) -> None:
    """
    Have `/proc` show Python with these words and this environment, as far as it fits, instead of what we were executed with.

    Nothing may still point to the environment of the execution: `os.environ` has been filled again.
    """
    places = _places()
    _write(places[0], [os.fsencode(part) for part in (sys.orig_argv[0], *words)])
    _write(places[1], [name + b"=" + value for name, value in environ.items()])


def _places() -> list[tuple[int, int]]:
    """From where to where the command line lies, and the environment; 0 where a kernel does not tell."""
    fields = Path("/proc/self/stat").read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()
    return [
        (int(fields[begin]), int(fields[end]))
        for begin, end in ((_ARGUMENTS, _ARGUMENTS_END), (_ENVIRONMENT, _ENVIRONMENT_END))
    ]


def _write(place: tuple[int, int], parts: Sequence[bytes]) -> None:
    """Write the parts that fit, and nothing in place of the rest."""
    begin, end = place
    text = b""
    for part in parts:
        if len(text) + len(part) + 1 < end - begin:
            text += part + b"\0"
    if begin:
        ctypes.memmove(begin, text.ljust(end - begin, b"\0"), end - begin)
