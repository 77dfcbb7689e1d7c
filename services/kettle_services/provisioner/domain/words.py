"""What a provider said, as it may be kept and shown."""

import re
from collections.abc import Iterable
from typing import Final

from kettle_wire.iam_http import JOIN_PREFIX

_LONGEST: Final = 500
_JOIN_TOKEN: Final = re.compile(rf"{re.escape(JOIN_PREFIX)}\.[A-Za-z0-9._-]+")
_UNPRINTABLE: Final = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029]+")


def cleaned(text: str, secrets: Iterable[str] = ()) -> str:
    """One line of it: without secrets, without control characters, and cut with `...` where it is long."""
    for secret in secrets:
        if secret:
            text = text.replace(secret, "***")
    line = " ".join(_UNPRINTABLE.sub(" ", without_join_tokens(text)).split())
    return line if len(line) <= _LONGEST else f"{line[: _LONGEST - 3]}..."


def without_join_tokens(text: str) -> str:
    """
    What a machine wrote, which may have shown its bootstrap: a shell that traces does, and a cloud-init that fails.
    """
    return _JOIN_TOKEN.sub("***", text)
