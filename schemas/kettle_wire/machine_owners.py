"""
Entries of the bucket in which iam tells negotiators whose jobs alone a machine takes: a person's, by login name, or those of an
accounting group, which schedds let only its members use.
"""

from typing import Final

_GROUP: Final = b"\0"
"""Before the name of a group; no login name has it."""


def owner_entry(owner: str, group: str) -> bytes:
    """The entry for one of them."""
    return owner.encode() if owner else _GROUP + group.encode()


def owner_of(entry: bytes) -> tuple[str, str]:
    """The person and the group of an entry; one of them is empty."""
    if entry.startswith(_GROUP):
        return "", entry[1:].decode(errors="replace")
    return entry.decode(errors="replace"), ""
