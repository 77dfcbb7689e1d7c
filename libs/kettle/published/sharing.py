"""
With whom a job's services are shared: `services_shared_with = alice, group:atlas`, in its ad `ServicesSharedWith`. Pure.
"""

import re
from typing import Final

import msgspec

from kettle.published.services import ServiceError
from kettle_wire.session_attributes import SHARED_WITH

ATTRIBUTE: Final = SHARED_WITH
"""Of a job: people and groups, as `sharing_text` writes them."""
MOST: Final = 100
"""Names in one list."""
LONGEST: Final = 4096
"""Characters of the whole list."""
_GROUP: Final = "group:"
_PERSON: Final = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.@+-]{0,127}")
_GROUP_NAME: Final = re.compile(r"/?[A-Za-z0-9_][A-Za-z0-9_./@+-]{0,127}")


class Sharing(msgspec.Struct, frozen=True):
    """Who reaches the services of a job besides its owner and administrators."""

    people: tuple[str, ...] = ()
    """Names in the pool."""
    groups: tuple[str, ...] = ()
    """As the credentials of people spell them."""


def parse_sharing(text: str) -> Sharing:
    """
    What is listed with commas between.

    Raises ServiceError: what is wrong, and what to write.
    """
    if len(text) > LONGEST:
        raise ServiceError(
            f"the list of those with whom services are shared has {len(text)} characters, and at most {LONGEST} are read"
        )
    words = [word.strip() for word in text.split(",")] if text.strip() else []
    if len(words) > MOST:
        raise ServiceError(
            f"services are shared with at most {MOST} people and groups, and these are {len(words)}: share them with a group"
        )
    people: dict[str, None] = {}
    groups: dict[str, None] = {}
    for word in words:
        name = word.removeprefix(_GROUP)
        is_group = name != word
        if not (_GROUP_NAME if is_group else _PERSON).fullmatch(name):
            raise ServiceError(
                f"{word[:40]!a} is nobody with whom services can be shared: write names of people of the pool, or group:NAME"
            )
        (groups if is_group else people)[name] = None
    return Sharing(people=tuple(people), groups=tuple(groups))


def sharing_text(sharing: Sharing) -> str:
    """The list as the attribute has it: people, then groups."""
    return ", ".join([*sharing.people, *(f"{_GROUP}{name}" for name in sharing.groups)])
