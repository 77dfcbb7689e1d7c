"""`kettle logs`: what the daemons of this host wrote."""

import argparse
import time
from datetime import datetime
from typing import Final

from kettle.runtime.daemon_logs import LEVELS, LogFile, LogLine, files_of
from kettle_services.cli.errors import UsageError
from kettle_services.cli.options import at_least, home_option, json_option
from kettle_services.cli.output.screen import Screen

HELP: Final = """\
The last lines of the logs of this host's daemons, in the order of their times.  Each daemon has a file in log/ of the pool's
directory; it is put aside when it is larger than log_max_mib ([kettle] in the settings).

examples:
  kettle logs                      the last lines of all daemons
  kettle logs schedd -n 100
  kettle logs startd -f            and what is added to it
  kettle logs --level warning      only warnings and errors
"""

_LOOK_S: Final = 0.2
_KNOWN: Final = frozenset({"ts", "level", "role", "logger", "msg", "exc"})


def arguments(parser: argparse.ArgumentParser) -> None:
    """What the command takes."""
    parser.add_argument(
        "daemons", nargs="*", metavar="DAEMON", help="of these alone, such as schedd or schedd.NAME"
    )
    parser.add_argument("-f", "--follow", action="store_true", help="go on with what is added")
    parser.add_argument(
        "-n", "--lines", type=at_least(0), default=20, metavar="N", help="how many (default: 20)"
    )
    parser.add_argument("--level", choices=LEVELS, default="debug", help="only lines that are so important")
    json_option(parser)
    home_option(parser)


def run(arguments: argparse.Namespace, screen: Screen) -> int:
    """Print them."""
    from kettle.client import home_directory

    directory = (arguments.home or home_directory()) / "log"
    paths = files_of(directory)
    if not paths:
        raise UsageError(f"there are no logs in {directory}: no pool was ever up there")
    for name in arguments.daemons:
        if name not in paths:
            from kettle.terminal.nearest_names import did_you_mean

            raise UsageError(
                f"there is no log of {name} in {directory}{did_you_mean(name, paths)}; there are: {', '.join(paths)}"
            )
    logs = [LogFile(path) for name, path in paths.items() if name in (arguments.daemons or paths)]
    lines = _added(logs, arguments.level)
    _print(lines[max(0, len(lines) - arguments.lines) :], screen)
    while arguments.follow:
        time.sleep(_LOOK_S)
        _print(_added(logs, arguments.level), screen)
    return 0


def _added(logs: list[LogFile], level: str) -> list[LogLine]:
    lines = [line for log in logs for line in log.more() if line.least(level)]
    return sorted(lines, key=lambda line: line.at)


def _print(lines: list[LogLine], screen: Screen) -> None:
    for line in lines:
        if screen.as_json:
            screen.json_line({"daemon": line.daemon, **line.fields})
        else:
            screen.say(_text(line, screen))
            if "exc" in line.fields:
                screen.block(str(line.fields["exc"]))
    screen.flush()


def _text(line: LogLine, screen: Screen) -> str:
    if "msg" not in line.fields:
        return f"{line.daemon}: {line.fields.get('line', '')}"
    when = (
        datetime.fromisoformat(line.at).astimezone().strftime("%Y-%m-%d %H:%M:%S.%f")[:-3] if line.at else ""
    )
    level = str(line.fields.get("level", ""))
    style = "bad" if level in {"error", "critical"} else "held" if level == "warning" else "dim"
    extra = "".join(f" {name}={value}" for name, value in line.fields.items() if name not in _KNOWN)
    return (
        f"{screen.paint(when, 'dim')} {screen.paint(level, style)} {line.daemon}: {line.fields['msg']}{extra}"
    )
