"""condor_fetchlog: the log of a daemon of this machine."""

import re
import socket
import sys
from pathlib import Path
from typing import Final

from kettle.terminal.text import data_output
from kettle_services.condor.arguments.grammar import Option, understood
from kettle_services.condor.errors import ToolError, WordsError

_ROLES: Final = ("master", "startd", "schedd", "collector", "negotiator")
OPTIONS: Final = {name: Option() for name in _ROLES} | {
    "debug": Option(),
    "kbdd": Option(),
    "pool": Option(takes=1),
}
HELP: Final = {
    "condor_fetchlog": """\
usage: condor_fetchlog [options] MACHINE SUBSYSTEM[.old]

Print the log of a daemon, as it is written: a line of JSON for each message.  SUBSYSTEM is a role, as SCHEDD, or the name of a
daemon, as schedd.ap1; with .old it is the log that was put aside before.  Logs are read where they are: MACHINE is this one,
and who reads them has to be permitted to read the files.  kettle logs shows them for people, those of all daemons together.

  -master, -startd, -schedd, -collector, -negotiator, -pool P, -debug   change nothing here
""",
}
_OLD: Final = ".old"
_HISTORY: Final = re.compile(r"(startd_)?history", re.IGNORECASE)


def run(_name: str, words: list[str]) -> int:
    """Print it."""
    named: list[str] = []
    for given in understood(words, OPTIONS):
        if not given.name:
            named += given.values
    if len(named) != 2:
        raise WordsError("write the machine and the daemon: condor_fetchlog MACHINE SUBSYSTEM")
    machine, subsystem = named
    if not _is_here(machine):
        raise ToolError(
            f"condor_fetchlog: the logs of {machine} are read on {machine}: log in there, and type kettle logs"
        )
    if _HISTORY.fullmatch(subsystem):
        raise ToolError(
            "condor_fetchlog: there are no history files; condor_history asks for what was recorded"
        )
    _print(log_of(subsystem))
    return 0


def _is_here(machine: str) -> bool:
    from kettle_services.condor.arguments.daemon_names import is_host

    return machine.lower() in {"localhost", "127.0.0.1"} or is_host(machine, socket.gethostname())


def log_of(subsystem: str) -> Path:
    """
    The file of a daemon in the directory of this machine's pool.

    Raises ToolError: it has none.
    """
    from kettle.client import home_directory
    from kettle.runtime.daemon_logs import files_of
    from kettle.terminal.nearest_names import did_you_mean

    directory = home_directory() / "log"
    known = files_of(directory)
    name = subsystem.lower().removesuffix(_OLD)
    file = {each.lower(): path for each, path in known.items()}.get(name)
    if file is None:
        there = f"; there are {', '.join(known)}" if known else ": no pool was ever up there"
        raise ToolError(
            f"condor_fetchlog: no log of {name} is in {directory}{did_you_mean(name, known)}{there}"
        )
    return file.with_name(f"{file.name}.1") if subsystem.lower().endswith(_OLD) else file


def _print(file: Path) -> None:
    try:
        with file.open(encoding="utf-8", errors="replace") as lines:
            data_output(sys.stdout).writelines(lines)
    except FileNotFoundError:
        raise ToolError(f"condor_fetchlog: there is no {file}: nothing was put aside yet") from None
    except PermissionError:
        raise ToolError(f"condor_fetchlog: you may not read {file}") from None
