"""
Many commands in one script for `sh -s`, each with its own input, output, errors and status.

What they print stands between words that nobody can guess, so whatever a login shell prints besides changes nothing.
"""

import shlex
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

import msgspec

from kettle.commands.port import Ran

GRACE_S: Final = 5.0
LATE: Final = frozenset({124, 137})
"""What `timeout` ends with when it has ended a command."""


class Asked(msgspec.Struct, frozen=True):
    """A command that is to be run."""

    words: Sequence[str]
    standard_input: str
    within: float


def script(asked: Sequence[Asked], mark: str, environment: Mapping[str, str], *, begins_within: float) -> str:
    """
    Run all of them, one after the other; `mark` is a word that is in none of the inputs.

    None is begun later than `begins_within` seconds after the first: who asked has given up by then.
    """
    exports = "".join(f"export {name}={shlex.quote(value)}\n" for name, value in environment.items())
    return f"{exports}begun=$(date +%s)\n" + "".join(
        _one(number, each, mark, begins_within) for number, each in enumerate(asked)
    )


def _one(number: int, asked: Asked, mark: str, begins_within: float) -> str:
    words = shlex.join(["timeout", "-k", f"{GRACE_S:g}", f"{asked.within:g}", *asked.words])
    given = asked.standard_input
    if given and not given.endswith("\n"):
        given += "\n"
    return f"""\
[ $(($(date +%s) - begun)) -le {begins_within:g} ] || exit
exec 3>&1
printf '\\n%s\\n' '{mark}:{number}:output'
errors=$( {{ {words} <<'{mark}'
{given}{mark}
}} 2>&1 1>&3 3>&- )
printf '\\n%s:%s\\n%s\\n%s\\n' '{mark}:{number}:status' "$?" "$errors" '{mark}:{number}:end'
"""


def answers(printed: str, mark: str) -> Iterator[tuple[int, Ran]]:
    """Those whose end was printed, with their numbers."""
    pieces = printed.split(f"\n{mark}:")
    for at in range(len(pieces) - 2):
        number, _, rest = pieces[at].partition(":")
        kind, _, output = rest.partition("\n")
        told, _, errors = pieces[at + 1].partition("\n")
        if (
            kind == "output"
            and told.startswith(f"{number}:status:")
            and pieces[at + 2].startswith(f"{number}:end")
        ):
            yield int(number), Ran(int(told.rpartition(":")[2]), output, errors)


def begun_in(printed: str, mark: str) -> Iterator[int]:
    """The numbers of those that were begun."""
    for piece in printed.split(f"\n{mark}:"):
        number, _, rest = piece.partition(":")
        if rest.startswith("output") and number.isdecimal():
            yield int(number)
