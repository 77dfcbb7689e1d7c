"""What somebody writes into a job does nothing to the terminal of others who list it."""

import json
import re
from typing import Final

from kettle.testing.commands.running import Said

from .condor import Condor

HOSTILE: Final = "\\x1b]0;owned\\x07\\x1b[2J\\u202egpj\\r"
"""A title, an erased screen, a turned direction, a line written over, as JSON and Python escape them."""
FORGED: Final = "1000000.0 forged"
DESCRIPTION: Final = """\
executable = /bin/sleep
arguments = "'a {hostile}' 100"
requirements = TARGET.Machine == "{hostile}"
batch_name = {hostile}
hold = true
+Lines = "one\\n{forged}"
+JobDescription = "{hostile}"
+Hostile = "{hostile}"
queue
"""
_COMMANDS_TO_TERMINALS: Final = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e]")


def unsafe(said: Said) -> list[str]:
    """What a terminal would obey."""
    return _COMMANDS_TO_TERMINALS.findall(said.out + said.err)


async def test_no_listing_obeys_what_a_job_says(condor: Condor) -> None:
    """
    Every command that lists jobs shows control characters of their names and attributes, and forges no line.

    Data for programs stays as it is: JSON escapes it, whole ads and chosen attributes keep it.
    """
    hostile = HOSTILE.encode().decode("unicode_escape")
    description = DESCRIPTION.format(hostile=hostile.rstrip("\r"), forged=FORGED)
    cluster = await condor.submitted(description)
    job = f"{cluster}.0"
    reason = f"{hostile}\n{FORGED}"
    kettle_says = condor.pool.kettle

    assert (await kettle_says("hold", job, "--reason", reason)).status in {0, 1}
    listings = {
        " ".join(words): await condor(*words)
        for words in [
            ("condor_q",),
            ("condor_q", "-nobatch"),
            ("condor_q", "-hold"),
            ("condor_q", "-better-analyze", job),
            ("condor_status",),
            ("condor_status", "-schedd"),
            ("condor_userprio",),
            ("condor_who",),
        ]
    }
    for words in [
        ("q",),
        ("q", "--batch"),
        ("q", "--held"),
        ("q", job, "--long"),
        ("why", job),
        ("events", job),
        ("status",),
        ("userprio",),
        ("usage",),
        ("log", "show", "--limit", "50"),
        ("edit", job, f'Hostile="{hostile}"'),
    ]:
        listings[f"kettle {' '.join(words)}"] = await kettle_says(*words)
    assert {} == {name: said for name, said in listings.items() if said.status}
    assert {} == {name: unsafe(said) for name, said in listings.items() if unsafe(said)}
    lines = [line for said in listings.values() for line in said.out.splitlines()]
    assert [] == [line for line in lines if line.startswith(FORGED)]
    assert any("\\x1b]0;owned\\x07" in line for line in lines)

    [ad] = json.loads((await condor("condor_q", job, "-json")).out)
    assert hostile == ad["Hostile"]
    assert f"one\n{FORGED}" == ad["Lines"]
    assert not re.search("[\x00-\x08\x0b-\x1f]", (await condor("condor_q", job, "-json")).out)
    whole = await condor("condor_q", job, "-long")
    assert (0, 1) == (whole.status, whole.out.count(f'\nLines = "one\\n{FORGED}"\n'))

    await condor("condor_rm", job)
    after = {
        "condor_history": await condor("condor_history"),
        "kettle history": await kettle_says("history"),
        "kettle why": await kettle_says("why", job),
        "kettle events": await kettle_says("events", job),
    }
    assert {} == {name: said for name, said in after.items() if said.status}
    assert {} == {name: unsafe(said) for name, said in after.items() if unsafe(said)}
