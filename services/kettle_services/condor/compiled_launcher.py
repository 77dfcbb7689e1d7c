"""
The launcher that is compiled where there is a compiler: an interpreter takes longer to start than a command to be carried out.

See docs/decisions/0217: Kettle brings the source, `kettle/command_server/launch.c`, because a program of a wheel would be for one
kind of machine.
"""

import hashlib
import os
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final

import kettle.command_server

NAME: Final = "launch"
"""The program, beside the directory of the commands."""
_COMPILERS: Final = "cc", "gcc", "clang"
_WAYS: Final = ("-static",), ()
"""Without the libraries of the machine it starts sooner still; not every compiler has what that takes."""
_WITHIN_S: Final = 60.0
_NOT_A_COMMAND: Final = 127
"""How it ends when nobody says for which command it is."""


def compiled(directory: Path) -> Path | None:
    """The program of a directory, if it is there and was compiled from our source."""
    path = directory / NAME
    with suppress(OSError):
        if _mark().encode() in path.read_bytes() and os.access(path, os.X_OK):
            return path
    return None


def compile_into(directory: Path) -> Path | None:
    """As `compiled`; it is made if it can be. None: there is no compiler, or what it makes does not run here."""
    if (there := compiled(directory)) is not None:
        return there
    import shutil

    path = directory / NAME
    stage = path.with_name(f".{NAME}.{os.urandom(4).hex()}")
    try:
        for compiler in filter(None, map(shutil.which, _COMPILERS)):
            for way in _WAYS:
                command = [
                    compiler,
                    "-O2",
                    *way,
                    "-s",
                    f'-DSOURCE="{_digest()}"',
                    "-o",
                    str(stage),
                    str(_source()),
                ]
                if _status(command) == 0 and _status([str(stage)]) == _NOT_A_COMMAND:
                    stage.replace(path)
                    return path
    finally:
        stage.unlink(missing_ok=True)
    path.unlink(missing_ok=True)
    return None


def _source() -> Path:
    return Path(kettle.command_server.__path__[0]) / "launch.c"


def _digest() -> str:
    return hashlib.blake2b(_source().read_bytes(), digest_size=16).hexdigest()


def _mark() -> str:
    """What the program has in it."""
    return f"kettle-launch {_digest()}"


def _status(command: Sequence[str]) -> int | None:
    """How a program ends that says nothing to anybody; None: it cannot be started, or does not end."""
    import subprocess

    try:
        done = subprocess.run(
            command,
            check=False,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            timeout=_WITHIN_S,
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.returncode
