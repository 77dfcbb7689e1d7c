"""
What iam says to the services of people who have come with a token, and of people who are banned: an entry in the bucket
`Subjects.people`, by `person_key`.

It is there as long as the credential from which it was made, or the ban; of several of one person the last one counts.
"""

from typing import Final

import msgspec

from kettle_wire.subjects import token


class Shown(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What a credential says of who has shown it, where the rules of the site say of which VO people are."""

    vo: str = ""
    """Empty: it is of none."""
    rule: str = ""
    """The rule that gives it, or because of which there is none, with its place; empty: no rule is about the credential."""
    issuer: str = ""
    subject: str = ""
    token: str = ""
    """Its own name."""
    groups: tuple[str, ...] = ()
    scopes: tuple[str, ...] = ()


class PersonSaid(msgspec.Struct, frozen=True, kw_only=True):
    """One person."""

    owner: str
    accounting_group: str = ""
    """Who is charged for jobs that name no group; empty: the owner."""
    levels: dict[str, str] = {}
    """Levels that a rule gives beside the lists of the site, each with the rule and its place."""
    banned: str = ""
    """That nothing is to be done for him, as the end of a sentence without the reason, which is not everybody's; empty: he is not banned."""
    shown: Shown | None = None
    """None: no rule of the site gives anybody a VO."""


def person_key(owner: str) -> str:
    """The key of a person's entry."""
    return token(owner)


encode_person: Final = msgspec.msgpack.Encoder().encode
decode_person: Final = msgspec.msgpack.Decoder(PersonSaid).decode
