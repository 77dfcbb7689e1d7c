"""condor_config_val."""

import os
import sys
from typing import Final

from kettle.client.connections.condor_config import CondorConfig
from kettle_services.condor.arguments.grammar import Option, understood
from kettle_services.condor.configuration import defaults
from kettle_services.condor.errors import ToolError, WordsError

OPTIONS: Final = {
    "config": Option(),
    "debug": Option(),
    "default": Option(takes=1, also=("def",)),
    "dump": Option(),
    "name": Option(takes=1),
    "pool": Option(takes=1),
    "raw": Option(),
    "set": Option(takes=1),
    "verbose": Option(),
}
HELP: Final = {
    "condor_config_val": """\
usage: condor_config_val [options] NAME ...

The value of a knob: of a variable _condor_NAME, else of condor_config in ~/.kettle, ~/.config/kettle or /etc/kettle or of
the file that CONDOR_CONFIG names, else what these commands go by.  The exit status is 1 if nothing defines it.

  -default VALUE         what is printed if nothing defines it
  -dump                  all knobs
""",
}


def run(_name: str, words: list[str]) -> int:
    """Print the values."""
    names: list[str] = []
    default: str | None = None
    dump = False
    for given in understood(words, OPTIONS):
        match given.name:
            case "":
                names.append(given.values[0])
            case "default":
                default = given.values[0]
            case "dump":
                dump = True
            case "set":
                raise ToolError(
                    "condor_config_val: -set is not carried out; write it into ~/.config/kettle/condor_config"
                )
            case _:
                pass
    knobs = CondorConfig(os.environ)
    if dump:
        return _dump(knobs)
    if not names:
        raise WordsError("which knob?  Write its name")
    return max(_say(knobs, name, default) for name in names)


def _say(knobs: CondorConfig, name: str, default: str | None) -> int:
    value = knobs.get(name)
    if value is None:
        value = defaults(knobs).get(name.upper(), default)
    if value is None:
        sys.stderr.write(f"Not defined: {name}\n")
        return 1
    sys.stdout.write(f"{value}\n")
    return 0


def _dump(knobs: CondorConfig) -> int:
    values = defaults(knobs) | {name.upper(): knobs.get(name) or "" for name in knobs.names()}
    sys.stdout.writelines(f"{name} = {value}\n" for name, value in sorted(values.items()))
    return 0
