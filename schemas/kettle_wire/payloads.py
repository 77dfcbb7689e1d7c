"""What pilots run for others, as they report it to the compute entrypoint that has started them."""

from typing import Annotated, Final

import msgspec

from kettle_wire.jobs import Name

MOST_AT_ONCE: Final = 100
"""In one report."""
PayloadName = Annotated[str, msgspec.Meta(min_length=1, max_length=256, pattern=r"^[^\x00-\x1f\x7f]+$")]
"""What the pilot's own system calls it, such as its GlobalJobId."""
_Word = Annotated[str, msgspec.Meta(max_length=1024, pattern=r"^[^\x00-\x1f\x7f]*$")]


class Payload(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """Something that a pilot runs for somebody, in the words of the pilot's own system."""

    name: PayloadName
    owner: Annotated[Name, msgspec.Meta(min_length=1)]
    """Whose it is there (RemoteOwner): not an account of this site."""
    subject: _Word = ""
    """Of that person's credential."""
    vo: _Word = ""
    project: _Word = ""
    host: _Word = ""
    """The machine on which it runs."""
    command: _Word = ""


class PayloadEnd(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """It does not run any more."""

    name: PayloadName
    exit_code: Annotated[int, msgspec.Meta(ge=-(2**31), le=2**31 - 1)] | None = None
    """None: not known."""


class PayloadReport(
    msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True
):
    """What a pilot has begun for others, and what of it is over; said again it changes nothing."""

    begun: Annotated[list[Payload], msgspec.Meta(max_length=MOST_AT_ONCE)] = []
    over: Annotated[list[PayloadEnd], msgspec.Meta(max_length=MOST_AT_ONCE)] = []
    """What it does not run is passed over."""
