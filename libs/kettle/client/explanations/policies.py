"""What may still become of a job by its periodic expressions and the site's, as sentences."""

from collections.abc import Iterator, Sequence
from typing import Final

from kettle.terminal.quantities import duration
from kettle_wire.ads import Ad
from kettle_wire.commands.schedd import PolicyOutlook

_PASSIVE: Final = {
    "hold": "held",
    "release": "released",
    "remove": "removed",
    "vacate": "taken from its machine",
}

_UNDEFINED: Final = "undefined"


def sentences(policies: Sequence[PolicyOutlook]) -> Iterator[str]:
    """One for each, with what it waits for."""
    for policy in policies:
        what = f"{policy.name} ({policy.expression})"
        become = _PASSIVE[policy.action]
        if policy.never:
            yield f"Its {what} does not count: {policy.never}."
        elif policy.delay == 0:
            yield f"It is {become} by itself at the next look, because {what} is true."
        elif policy.delay is not None:
            yield f"It is {become} by itself in {duration(policy.delay)}, when {what} becomes true, if nothing else changes."
        else:
            yield f"It is {become} by itself when {what} is true; now it is not{_because(policy)}."


def to_come(policies: Sequence[PolicyOutlook], ad: Ad) -> list[PolicyOutlook]:
    """
    Those that time makes true; of a routed job also those that ask for what is undefined: its route may have lost that.
    """
    routed = "RouteName" in ad
    return [
        each for each in policies if each.delay is not None or (routed and _UNDEFINED in each.values.values())
    ]


def releases(policies: Sequence[PolicyOutlook]) -> bool:
    """Whether something may release the job without anybody's doing."""
    return any(one.action == "release" and not one.never for one in policies)


def _because(policy: PolicyOutlook) -> str:
    values = ", ".join(f"{name} is {value}" for name, value in policy.values.items())
    failing = " and ".join(policy.false)
    told = "" if policy.false == [policy.expression] else f" in {failing}"
    return f"{told}: {values}" if values else told
