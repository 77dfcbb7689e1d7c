"""The condor_ce_* commands that are those without the ce: the pool and the access point are the same."""

from importlib import import_module
from typing import Final

from kettle_services.condor.start import COMMANDS

SAME: Final = {
    f"condor_ce_{name}": f"condor_{name}"
    for name in (
        "history",
        "hold",
        "ping",
        "q",
        "qedit",
        "reconfig",
        "release",
        "rm",
        "status",
        "submit",
        "transfer_data",
        "transform_ads",
    )
}
"""Each command, and the one that it is."""
HELP: Final = {
    name: f"""\
usage: {name} [options] ...

The same as {same}, for jobs that come in through a compute entrypoint: they are those of its access point.
{same} -help says what it takes; -name and -pool name the entrypoint.
"""
    for name, same in SAME.items()
}


def run(name: str, words: list[str]) -> int:
    """Carry out the command that it is."""
    same = SAME[name]
    module = import_module(f"kettle_services.condor.commands.{COMMANDS[same][0]}")
    return int(module.run(same, words))
