"""`kettle log-level`: how much the daemons of this host write to their logs, while they run."""

import argparse
import signal
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Final

from kettle.client import home_directory
from kettle.runtime.settings_in_use import LEVELS, level_file
from kettle_services.cli.errors import CommandError, UsageError
from kettle_services.cli.options import home_option, json_option
from kettle_services.cli.output.screen import Screen

if TYPE_CHECKING:
    from kettle.pool.home import Home

HELP: Final = """\
Have a daemon of this host log more or less, at once and without a new start.  It holds until the pool is stopped, also over new starts of
the daemon, or until it is `default` again: then log_level of the settings counts.  Without a level it says which are in force.

examples:
  kettle log-level schedd debug
  kettle log-level schedd default
  kettle log-level
"""

_DEFAULT: Final = "default"


def arguments(parser: argparse.ArgumentParser) -> None:
    """What the command takes."""
    parser.add_argument("daemon", nargs="?", metavar="DAEMON", help="such as schedd or schedd.NAME")
    parser.add_argument("level", nargs="?", choices=[*LEVELS, _DEFAULT], help="of what it logs from now on")
    json_option(parser)
    home_option(parser)


def run(arguments: argparse.Namespace, screen: Screen) -> int:
    """Do it, or say how it is."""
    from kettle.pool import processes, state
    from kettle.pool.home import Home

    home = Home((arguments.home or home_directory()).expanduser().resolve())
    found = state(home.path)
    if found is None:
        raise CommandError(
            f"no pool runs in {home.path}: start it with kettle up, or name its directory with --home"
        )
    pids = {each.name: each.pid for each in found.daemons}
    known = {path.stem for path in home.in_use.glob("*.json")} - {"master"}
    if arguments.daemon is None:
        levels = {name: _said(home, name) for name in sorted(known)}
        if screen.as_json:
            screen.json(levels)
        else:
            screen.table(("DAEMON", "LEVEL"), list(levels.items()))
        return 0
    if arguments.daemon not in known:
        raise UsageError(f"there is no daemon {arguments.daemon} here; there are: {', '.join(sorted(known))}")
    if arguments.level is None:
        raise UsageError(f"name a level: {', '.join([*LEVELS, _DEFAULT])}")
    _keep(_file(home, arguments.daemon), arguments.level)
    if pid := pids.get(arguments.daemon, 0):
        try:
            # One that has ended reads the file when it starts again.
            processes.signal_service(pid, signal.SIGHUP, found.pool_id, master=found.pid)
        except PermissionError as error:
            raise CommandError(f"{arguments.daemon} is of another account: ask who runs the pool") from error
    return screen.done(f"{arguments.daemon} logs {_said(home, arguments.daemon)}.")


def _file(home: "Home", daemon: str) -> Path:
    return level_file(home.in_use / f"{daemon}.json")


def _keep(path: Path, level: str) -> None:
    import msgspec

    from kettle.auth.private_files import write_private

    try:
        if level == _DEFAULT:
            path.unlink(missing_ok=True)
        else:
            write_private(path, msgspec.json.encode(level))
    except OSError as error:
        raise CommandError(f"{path} cannot be written: {error.strerror}; ask who runs the pool") from error


def _said(home: "Home", daemon: str) -> str:
    import msgspec

    with suppress(FileNotFoundError, msgspec.MsgspecError):
        return msgspec.json.decode(_file(home, daemon).read_bytes(), type=str)
    return "what its settings say"
