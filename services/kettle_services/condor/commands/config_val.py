"""condor_config_val."""

import os
import socket
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
    "summary": Option(),
    "verbose": Option(),
}
HELP: Final = {
    "condor_config_val": """\
usage: condor_config_val [options] NAME ...

The value of a knob: of a variable _condor_NAME, else of condor_config in ~/.kettle, ~/.config/kettle or /etc/kettle or of
the file that CONDOR_CONFIG names, else what these commands go by.  The exit status is 1 if nothing defines it.

  -default VALUE         what is printed if nothing defines it
  -dump                  all knobs
  -summary               the knobs that somebody has set, file by file
  -config                the files that are read, the strongest last
  -verbose               beside the value, where it was set and how it was written there
""",
}


def run(_name: str, words: list[str]) -> int:
    """Print the values."""
    names: list[str] = []
    default: str | None = None
    asked: set[str] = set()
    for given in understood(words, OPTIONS):
        match given.name:
            case "":
                names.append(given.values[0])
            case "default":
                default = given.values[0]
            case "set":
                raise ToolError(
                    "condor_config_val: -set is not carried out; write it into ~/.config/kettle/condor_config"
                )
            case name:
                asked.add(name)
    knobs = CondorConfig(os.environ)
    if "config" in asked:
        return _files(knobs)
    if "summary" in asked:
        return _summary(knobs)
    if "dump" in asked:
        return _dump(knobs)
    if not names:
        raise WordsError("which knob?  Write its name")
    if "verbose" in asked:
        return max(_explain(knobs, name, default) for name in names)
    return max(_say(knobs, name, default, raw="raw" in asked) for name in names)


def _value(knobs: CondorConfig, name: str, default: str | None) -> str | None:
    value = knobs.get(name)
    return defaults(knobs).get(name.upper(), default) if value is None else value


def _say(knobs: CondorConfig, name: str, default: str | None, *, raw: bool) -> int:
    value = (knobs.raw(name) if raw else None) or _value(knobs, name, default)
    if value is None:
        sys.stderr.write(f"Not defined: {name}\n")
        return 1
    sys.stdout.write(f"{value}\n")
    return 0


def _explain(knobs: CondorConfig, name: str, default: str | None) -> int:
    value = _value(knobs, name, default)
    if value is None:
        sys.stderr.write(f"Not defined: {name}\n")
        return 1
    place = knobs.where(name)
    sys.stdout.write(f"{name} = {value}\n")
    if place is None:
        sys.stdout.write(f" # at: <Default>\n # raw: {name} = {value}\n")
    else:
        line = f", line {place.line}" if place.line else ""
        sys.stdout.write(f" # at: {place.source}{line}\n # raw: {place.name} = {place.text}\n")
    return 0


def _files(knobs: CondorConfig) -> int:
    first, *others = knobs.sources() or ["<none>"]
    sys.stdout.write(f"Configuration source:\n\t{first}\n")
    if others:
        sys.stdout.write("Local configuration sources:\n" + "".join(f"\t{each}\n" for each in others))
    return 0


def _summary(knobs: CondorConfig) -> int:
    sys.stdout.write(f"# Configuration from machine: {socket.gethostname()}\n")
    places = [place for name in knobs.names() if (place := knobs.where(name)) is not None]
    for source in dict.fromkeys(place.source for place in places):
        sys.stdout.write(f"\n#\n# from {source}\n#\n")
        for place in sorted((each for each in places if each.source == source), key=lambda each: each.line):
            sys.stdout.write(f"{place.name} = {place.text}\n")
    return 0


def _dump(knobs: CondorConfig) -> int:
    values = defaults(knobs) | {name.upper(): knobs.get(name) or "" for name in knobs.names()}
    sys.stdout.writelines(f"{name} = {value}\n" for name, value in sorted(values.items()))
    return 0
