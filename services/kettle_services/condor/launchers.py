"""
The files that a shell finds when a condor_* command is typed: `kettle condor-env` writes them.

Each is a few lines of Python for the interpreter that wrote it, with the paths of the modules, so that neither the
environment nor the hooks of an installation are needed: docs/decisions/0056-commands-of-htcondor.md.
"""

import os
import sys
import sysconfig
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Final

from kettle_services.condor.start import COMMANDS, SERVED

BIN: Final = "bin"
"""The directory for PATH."""
PYTHON: Final = "python"
"""The directory for PYTHONPATH, with modules of the names of HTCondor's bindings."""
INSTALLATION: Final = "installation"
"""The file from which those modules know where Kettle is: `condor/python/kettle_installation` reads it."""

_LONGEST: Final = 120
"""Bytes of a first line that every kernel reads to its end."""
_BODY: Final = """\
import sys

sys.path += {paths!r}
from kettle_services.condor.start import command

command({name!r})
"""
_SERVED_BODY: Final = """\
import sys

sys.path += {paths!r}
from kettle.command_server.asking import end_if_carried_out

end_if_carried_out({name!r})
from kettle_services.condor.start import command

command({name!r})
"""
"""For commands that a command server carries out: docs/decisions/0165-commands-are-forked-from-a-warm-process.md."""
HTCONDOR: Final = "htcondor"
"""The command of nouns and verbs, which is in HTCondor's own package `htcondor`: ours only starts it on our modules."""
_HTCONDOR: Final = """\
#!/usr/bin/env python3
import sys

sys.path.insert(0, {bindings!r})
try:
    from htcondor_cli.cli import main
except ModuleNotFoundError as error:
    if error.name != "htcondor_cli":
        raise
    sys.exit("the htcondor command is in HTCondor's Python package, which this Python lacks: pip install htcondor")
sys.exit(main())
"""


def default_directory(environ: dict[str, str] | None = None) -> Path:
    """
    Where the launchers of this installation are: beside its interpreter, else in the person's own directory.
    """
    beside = Path(sys.prefix) / "libexec" / "kettle" / "condor"
    if _current(beside) or _may_write(beside):
        return beside
    environ = dict(os.environ) if environ is None else environ
    data = environ.get("XDG_DATA_HOME") or "~/.local/share"
    return Path(data).expanduser() / "kettle" / "condor"


def install(directory: Path) -> Path:
    """
    Write what is not there or not up to date; the directory for PATH.

    Raises OSError.
    """
    place = directory / BIN
    place.mkdir(parents=True, exist_ok=True)
    for name in COMMANDS:
        _write(place / name, launcher(name))
    for path in place.glob("condor_*"):
        if path.name not in COMMANDS:
            path.unlink()
    if modules := bindings():
        link = directory / PYTHON
        if not link.is_symlink() or link.readlink() != modules:
            link.unlink(missing_ok=True)
            link.symlink_to(modules, target_is_directory=True)
        _write(directory / INSTALLATION, installation(), 0o644)
        _write(place / HTCONDOR, _HTCONDOR.format(bindings=str(link)))
    return place


def launcher(name: str, interpreter: str = sys.executable, paths: Sequence[str] | None = None) -> str:
    """The text of one."""
    paths = module_paths() if paths is None else list(paths)
    body = (_SERVED_BODY if name in SERVED else _BODY).format(paths=paths, name=name)
    if " " not in interpreter and len(interpreter.encode()) <= _LONGEST:
        return f"#!{interpreter} -IS\n{body}"
    quoted = interpreter.replace("'", "'\"'\"'")
    return f"#!/bin/sh\n''':'\nexec '{quoted}' -IS \"$0\" \"$@\"\n'''\n{body}"


def module_paths() -> list[str]:
    """Where the modules of Kettle and their dependencies are, for an interpreter with no other paths."""
    import kettle
    import kettle_services
    import kettle_wire

    own = [
        str(Path(place).parent)
        for package in (kettle_wire, kettle, kettle_services)
        for place in package.__path__
    ]
    needed = [sysconfig.get_path("purelib"), sysconfig.get_path("platlib")]
    spec = find_spec("msgspec")
    if spec is not None and spec.origin is not None:
        needed.append(str(Path(spec.origin).parent.parent))
    return list(dict.fromkeys([*own, *needed]))


def installation() -> str:
    """For which Python Kettle is installed, and where: a line each."""
    return "".join(f"{line}\n" for line in (sys.implementation.cache_tag, *module_paths()))


def bindings() -> Path | None:
    """The directory with the modules of the names of HTCondor's bindings, if there is one."""
    place = Path(__file__).parent / PYTHON
    return place if place.is_dir() else None


def _current(directory: Path) -> bool:
    place = directory / BIN
    there = bindings() is None or _says(directory / INSTALLATION, installation())
    return there and all(_says(place / name, launcher(name)) for name in COMMANDS)


def _says(path: Path, text: str) -> bool:
    try:
        return path.read_text(encoding="utf-8") == text
    except (OSError, UnicodeDecodeError):
        return False


def _may_write(directory: Path) -> bool:
    """Whether the directory, or the nearest one above it that is there, is ours to write in."""
    there = next(path for path in (directory / BIN, *(directory / BIN).parents) if path.is_dir())
    return os.access(there, os.W_OK)


def _write(path: Path, text: str, mode: int = 0o755) -> None:
    """Whole or not at all: somebody may be starting it."""
    if _says(path, text) and path.stat().st_mode & mode == mode:
        return
    stage = path.with_name(f".{path.name}.{os.urandom(4).hex()}")
    try:
        stage.write_text(text, encoding="utf-8")
        stage.chmod(mode)
        stage.replace(path)
    except OSError:
        stage.unlink(missing_ok=True)
        raise
