"""
To whom mail about a job goes: what a submitter may write, and what nobody should hand to a mail server.

Pure.
"""

import re
from typing import Final

MOST: Final = 10
"""Recipients of one job's mails: each job may have several mails, and a description has thousands of jobs."""
_LONGEST: Final = 254
"""Characters of an address, by RFC 5321."""
_ADDRESS: Final = re.compile(
    r"[A-Za-z0-9!#$%&'*+/=?^_`{|}~.-]{1,64}(@[A-Za-z0-9]([A-Za-z0-9-]*[A-Za-z0-9])?(\.[A-Za-z0-9]([A-Za-z0-9-]*[A-Za-z0-9])?)*)?"
)
"""
RFC 5321 without quotes, comments and literals, of which parsers think differently; a name alone is somebody here.
"""


class RecipientError(ValueError):
    """Not a list of recipients; the message says which one is none, or that there are too many."""


def recipients(text: str) -> list[str]:
    """
    The addresses, or names of local users, in a list separated by commas.

    Raises:
        RecipientError: one of them is not an address, there are more than `MOST`, or none.
    """
    found = [each for part in text.split(",") if (each := part.strip())]
    if not found:
        raise RecipientError("there is no address in it")
    if len(found) > MOST:
        raise RecipientError(
            f"it has {len(found)} addresses, and at most {MOST} are taken: use a mailing list"
        )
    for each in found:
        if len(each) > _LONGEST or _ADDRESS.fullmatch(each) is None:
            raise RecipientError(f"{each[:_LONGEST]!r} is no mail address: write ann@example.org, or ann")
    return found
