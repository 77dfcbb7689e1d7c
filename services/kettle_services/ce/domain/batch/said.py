"""What a batch system said, as it may be kept and shown."""

import re
from typing import Final

_LONGEST: Final = 500
_UNPRINTABLE: Final = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029]+")


def cleaned(text: str) -> str:
    """One line of it, without control characters, and cut with `...` where it is long."""
    line = " ".join(_UNPRINTABLE.sub(" ", text).split())
    return line if len(line) <= _LONGEST else f"{line[: _LONGEST - 3]}..."
