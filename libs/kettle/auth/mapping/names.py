"""Names of people as `user@domain`: how they are made of a template, and which are names at all."""

import re
from collections.abc import Sequence
from typing import Final

BANNED: Final = "banned.htcondor.org"
"""The domain of those whom a map file shuts out."""

_GROUP: Final = re.compile(r"\\(.?)", re.DOTALL)
_USER: Final = re.compile(r"[^\s@/\\\x00-\x1f\x7f.\-][^\s@/\\\x00-\x1f\x7f]{0,254}")
_DOMAIN: Final = re.compile(r"[A-Za-z0-9_](?:[A-Za-z0-9_.-]{0,252}[A-Za-z0-9_])?")


class NameRefused(ValueError):  # noqa: N818 - what is refused is the name
    """A mapping leads to what is no name; the message is a sentence."""


def missing_group(template: str, groups: int) -> str:
    """What is wrong with the references of a template to the groups of its pattern; empty if nothing is."""
    for found in _GROUP.finditer(template):
        if not (found[1].isascii() and found[1].isdecimal()):
            return rf"'{template}' has a backslash that no digit follows: \1 is the first group"
        if int(found[1]) > groups:
            has = {0: "has no group", 1: "has one group"}.get(groups, f"has {groups} groups")
            return rf"'{template}' refers to \{found[1]}, and the pattern {has}"
    return ""


def filled(template: str, groups: Sequence[str]) -> str:
    r"""A template with what the groups matched; `\0` is the whole match."""
    return _GROUP.sub(lambda found: groups[int(found[1])], template)


def name_of(template: str, groups: Sequence[str], domain: str) -> tuple[str, str]:
    """
    User and domain that a template leads to; `domain` is what a name without one gets.

    The `@` has to be the template's own: else who chooses the text that is matched would choose the domain.

    Raises:
        NameRefused: the result is no name.
    """
    name = filled(template, groups)
    if "@" in name and "@" not in template:
        raise NameRefused(
            rf"'{name}' would bring its own domain: only the template may have the @, as in '\1@\2' or '\1@example.org'"
        )
    user, at, own = name.partition("@")
    if not _USER.fullmatch(user):
        raise NameRefused(f"'{name}' is no name of a user")
    if at and not _DOMAIN.fullmatch(own):
        raise NameRefused(f"'{name}' has no domain behind its @")
    return user, own.lower() if at else domain
