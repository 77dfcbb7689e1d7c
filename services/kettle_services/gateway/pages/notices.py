"""
What the page after a form says of what the form has done: it is carried there by a cookie, so that the address of that page can be
opened again and nothing is done twice.
"""

from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Sequence
from typing import Final

import msgspec

from kettle_services.gateway.rest.refusals import RequestRefused

COOKIE: Final = "kettle_notice"
LASTS_S: Final = 60
MOST: Final = 3500
"""So many characters; browsers keep 4096 of a cookie with its name and attributes."""


class Notice(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """Sentences about what was done."""

    said: Sequence[str] = ()
    """What was done."""
    trouble: Sequence[str] = ()
    """What was not."""
    undo: str = ""
    """The action on jobs that takes it back; empty: none does."""
    ids: str = ""
    """Of the jobs to undo it for, with commas between them."""
    back: str = ""
    """Where that leads again."""


_OF_THE_FORM: Final = frozenset({400, 403, 404, 409, 422})
"""Refusals that are about what was sent."""


def refused(refusal: RequestRefused) -> Notice:
    """What was not done, as a sentence; raises the refusal again where it is not about what was sent."""
    if refusal.status not in _OF_THE_FORM:
        raise refusal
    sentence = str(refusal)
    return Notice(trouble=[f"{sentence[:1].upper()}{sentence[1:].rstrip('.')}."])


def packed(notice: Notice) -> str:
    """As the value of a cookie."""
    return urlsafe_b64encode(msgspec.json.encode(notice)).decode().rstrip("=")


def unpacked(text: str) -> Notice | None:
    """What a cookie says; None: nothing, or it is none of ours, and then there is nothing to say."""
    try:
        return msgspec.json.decode(urlsafe_b64decode(text + "=" * (-len(text) % 4)), type=Notice)
    except (ValueError, msgspec.MsgspecError):
        return None
