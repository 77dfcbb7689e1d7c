"""
The files that a shell finds when a condor_* command is typed: `kettle condor-env` writes them.

Each is a few lines of Python for the interpreter that wrote it, with the paths of the modules, so that neither the
environment nor the hooks of an installation are needed: docs/decisions/0056-commands-of-htcondor.md.  Those that a command
server carries out ask it first: with a compiled program where there is one, see `compiled_launcher`.
"""

import hashlib
import os
import sys
import sysconfig
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Final

from kettle_services.condor.compiled_launcher import compile_into, compiled
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

end_if_carried_out({name!r}, {installation!r})
from kettle_services.condor.start import command

command({name!r}, {installation!r})
"""
"""For commands that a command server carries out: docs/decisions/0165-commands-are-forked-from-a-warm-process.md."""
_COMPILED_BODY: Final = """#!{program}
# {name} {installation} {interpreter}
import sys

sys.path += {paths!r}
from kettle_services.condor.start import command

command({name!r}, {installation!r})
"""
"""For those that a compiled program asks: it reads the second line, and has the interpreter run the file if no server does it."""
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
    return beside if _current(beside) or _may_write(beside) else _own_directory(environ)


def _own_directory(environ: dict[str, str] | None = None) -> Path:
    """Of the person, who may have it on machines of several kinds."""
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
    program = compile_into(directory) if directory != _own_directory() else None
    for name in COMMANDS:
        _write(place / name, launcher(name, program=program))
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


def launcher(
    name: str,
    interpreter: str = sys.executable,
    paths: Sequence[str] | None = None,
    *,
    program: Path | None = None,
) -> str:
    """The text of one; `program`: the compiled launcher, if there is one."""
    paths = module_paths() if paths is None else list(paths)
    installation = _installation_of(interpreter, paths)
    if program is not None and name in SERVED and _may_lead(str(program)):
        return _COMPILED_BODY.format(
            program=program, name=name, installation=installation, interpreter=interpreter, paths=paths
        )
    body = (_SERVED_BODY if name in SERVED else _BODY).format(
        paths=paths, name=name, installation=installation
    )
    if _may_lead(interpreter):
        return f"#!{interpreter} -IS\n{body}"
    quoted = interpreter.replace("'", "'\"'\"'")
    return f"#!/bin/sh\n''':'\nexec '{quoted}' -IS \"$0\" \"$@\"\n'''\n{body}"


def _may_lead(program: str) -> bool:
    """Whether the first line of a script can name it."""
    return " " not in program and len(program.encode()) <= _LONGEST


def _installation_of(interpreter: str, paths: Sequence[str]) -> str:
    """What tells by which interpreter, and from which modules, a command is carried out."""
    told = "\n".join((sys.version, interpreter, *paths))
    return hashlib.blake2b(told.encode("utf-8", "surrogateescape"), digest_size=16).hexdigest()


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
    place, program = directory / BIN, compiled(directory)
    there = bindings() is None or _says(directory / INSTALLATION, installation())
    return there and all(_says(place / name, launcher(name, program=program)) for name in COMMANDS)


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
