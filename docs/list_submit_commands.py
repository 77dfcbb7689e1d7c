"""
Makes `docs/reference/submit-commands.md`: what becomes of each command of a submit description.

`docs/generate.py` writes the page; by itself this module only makes its text.
"""

from collections.abc import Iterator, Mapping
from itertools import groupby
from pathlib import Path
from typing import Final

import msgspec

from kettle.schema_generation.markdown import table
from kettle.submit.commands import NAMES as SUBMIT

TOP: Final = Path(__file__).parents[1]


class SubmitCommands(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What becomes of each command, by its name."""

    carried_out: dict[str, str]
    noted: dict[str, str]
    refused: dict[str, str]


def submit_commands() -> SubmitCommands:
    """From `docs/submit.toml`."""
    return msgspec.toml.decode((TOP / "docs/submit.toml").read_bytes(), type=SubmitCommands)


def submit_commands_page() -> str:
    """The reference of submit commands."""
    found = submit_commands()
    made = ["# Submit commands\n", _SUBMIT_HEAD, "## Carried out\n"]
    made.append(table(("command", "other spellings", "meaning"), list(_submit_rows(found.carried_out))))
    made += [
        "## Accepted without effect\n",
        "A job does the same with and without them; those that are an attribute are in its ad.\n",
    ]
    made.append(table(("command", "other spellings", "why"), list(_submit_rows(found.noted))))
    made += ["## Refused\n", _REFUSED_HEAD]
    rows = [(f"`{name}`", why) for name, why in found.refused.items()]
    return "\n".join([*made, table(("command", "why, and what to do instead"), rows)])


def _submit_rows(commands: Mapping[str, str]) -> Iterator[tuple[str, str, str]]:
    """One for each meaning: commands that stand together and have the same share it."""
    for meaning, group in groupby(commands, key=commands.__getitem__):
        names = list(group)
        spellings = [other for name in names for other in SUBMIT.get(name, ())]
        yield ", ".join(f"`{name}`" for name in names), ", ".join(f"`{each}`" for each in spellings), meaning


_SUBMIT_HEAD: Final = """\
What a [submit description](submit.md) may say, and what becomes of it.
Names are compared without regard to case.
"""

_REFUSED_HEAD: Final = """\
They are refused with their line, also by `condor_submit`.
It ignores commands of universes that there are not: `ec2_...`, `gce_...`, `azure_...`, `arc_...`, `vm_...`, `xen_...`, `java_...`; the universe itself is refused.
"""
