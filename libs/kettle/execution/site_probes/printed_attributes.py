"""The attributes that a program of the machine's owner prints, one in a line: `Name = expression`."""

import re
from typing import Final

from kettle.classad import ClassAd, ClassAdParseError, parse
from kettle_wire.ads import Ad

_LINE: Final = re.compile(r"\s*([A-Za-z_][A-Za-z0-9_]*)\s*=(?!=)(.*)", re.DOTALL)
_MOST: Final = 200
_END: Final = "-"
"""A line that begins with it ends an ad, as for HTCondor's STARTD_CRON; there is one ad here."""


class NotAttributesError(ValueError):
    """A line is something else; the message is the end of a sentence."""


def read_attributes(text: str, prefix: str = "") -> Ad:
    """
    The attributes, each with the prefix before its name.

    Raises:
        NotAttributesError: a line is no attribute, or there are too many.
    """
    ad = ClassAd()
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip() or line.lstrip().startswith(("#", _END)):
            continue
        found = _LINE.fullmatch(line)
        if found is None:
            raise NotAttributesError(f"line {number} of what it prints is not `Name = expression`")
        try:
            ad[f"{prefix}{found[1]}"] = parse(found[2])
        except ClassAdParseError as error:
            raise NotAttributesError(f"line {number} of what it prints: {error}") from error
        if len(ad) > _MOST:
            raise NotAttributesError(f"it prints more than {_MOST} attributes")
    return ad.to_wire()
