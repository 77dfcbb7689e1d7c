"""What accounts of the bus let each other use, as the server wants to be told."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from kettle.auth.trust.accounts import Account, Use
from kettle.auth.trust.keys import KeyPair

_NANOSECONDS: Final = 1_000_000_000


def exported(which: Account, shared: Sequence[Use]) -> list[dict[str, Any]]:
    """
    What an account lets others use.

    Of what some use all of and others a part, the whole: a server takes no account whose exports overlap.  What each account uses
    its imports say.
    """
    found: dict[tuple[str, bool], dict[str, Any]] = {}
    for use in shared:
        if use.of is not which:
            continue
        entry: dict[str, Any] = {"name": use.subject, "subject": use.subject, "type": _type(use)}
        if not use.heard:
            entry |= {
                "response_type": "Stream" if use.many else "Singleton",
                "response_threshold": int(use.answered_within * _NANOSECONDS),
            }
        found[use.subject, use.heard] = entry
    return [
        entry
        for (subject, heard), entry in found.items()
        if not any(subject != wider and heard == alike and covers(wider, subject) for wider, alike in found)
    ]


def covers(pattern: str, subject: str) -> bool:
    """Whether one pattern of subjects has all that another one has."""
    wanted, given = pattern.split("."), subject.split(".")
    for place, part in enumerate(wanted):
        if part == ">":
            return len(given) > place
        if place >= len(given) or given[place] == ">" or part not in {"*", given[place]}:
            return False
    return len(wanted) == len(given)


def imported(which: Account, shared: Sequence[Use], keys: Mapping[Account, KeyPair]) -> list[dict[str, Any]]:
    """What an account uses of others, under its own names."""
    return [
        {
            "name": use.subject,
            "subject": use.subject,
            "account": keys[use.of].public,
            "type": _type(use),
            "local_subject": use.local or use.subject,
        }
        for use in shared
        if use.by is which
    ]


def _type(use: Use) -> str:
    return "stream" if use.heard else "service"
