"""
What became of each knob of an HTCondor configuration: taken, without a meaning here, or for somebody to
decide.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Literal

import msgspec

from kettle.submit.configuration_reader import Complaint, Knob
from kettle_services.cli.condor_config.tables import KNOBS

Fate = Literal["taken", "used", "no meaning", "decide"]
"""`used`: other knobs are made of it; `decide`: somebody has to do something about it, and it says what."""


class AccountLine(msgspec.Struct, frozen=True, kw_only=True):
    """One knob, at the line that counts."""

    place: str
    knob: str
    fate: Fate
    why: str
    """The settings that it has become, or the reason."""


def account(
    knobs: Mapping[str, Knob], taken: Mapping[str, Sequence[str]], complaints: Sequence[Complaint]
) -> Iterator[AccountLine]:
    """
    A line for each knob and for each complaint that is about none, in the order of files and lines.

    `taken`: the settings that were made of a knob, by its name in lower case.
    """
    lines = [
        _of_knob(knob, taken.get(key, ()), complaints) for key, knob in knobs.items() if knob.text.strip()
    ]
    told = {(line.place, line.knob) for line in lines}
    lines += [
        AccountLine(place=each.place, knob=each.what, fate="decide", why=each.why)
        for each in complaints
        if (each.place, each.what) not in told
    ]
    yield from sorted(lines, key=lambda line: place_order(line.place))


def _of_knob(knob: Knob, settings: Sequence[str], complaints: Sequence[Complaint]) -> AccountLine:
    place = str(knob.place)
    reasons = [each.why for each in complaints if (each.place, each.what) == (place, knob.name)]
    fate: Fate = "used"
    why = "other knobs are made of it"
    if reasons:
        bare = knob.name.rpartition(".")[2]
        known = KNOBS.named_reason(bare)
        fate = "no meaning" if [known] == reasons and not KNOBS.decides(bare) else "decide"
        why = "; ".join(reasons)
        if settings:
            why = f"{', '.join(settings)}, but: {why}"
    elif settings:
        fate, why = "taken", ", ".join(settings)
    return AccountLine(place=place, knob=knob.name, fate=fate, why=why)


def place_order(place: str) -> tuple[str, int]:
    """By which places are sorted: the file, and the line."""
    source, _, line = place.partition(" ")[0].rpartition(":")
    return source, int(line) if line.isdecimal() else 0
