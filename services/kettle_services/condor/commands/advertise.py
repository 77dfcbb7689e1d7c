"""condor_advertise: refused, with what does the same."""

from typing import Final, NoReturn

from kettle_services.condor.errors import ToolError

HELP: Final = {
    "condor_advertise": """\
usage: condor_advertise

Not carried out, and not to come: an ad stands on the bus under the name of the daemon that it is of, and only the key of that
daemon may write there, so that nobody can speak for another's machine or queue.

What of it was meant is done like this: attributes of a machine are set with `attributes` of [startd] (STARTD_ATTRS) or found
out by a program that `discovery` names; a machine that is not of this pool joins it by running a startd; another pool's ads
come here through `view_pools` of [collector].
""",
}


def run(_name: str, _words: list[str]) -> NoReturn:
    """Say so."""
    raise ToolError(
        "condor_advertise: only a daemon itself may write its ad; for attributes of a machine see attributes in [startd], "
        "and for more: condor_advertise -help"
    )
