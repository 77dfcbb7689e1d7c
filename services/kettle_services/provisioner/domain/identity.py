"""How a machine says whose it is: `kettle:DEPLOYMENT:LEASE`, wherever a provider keeps a word for us."""

import re
from typing import Final

_MARK: Final = re.compile(r"kettle:(?P<deployment>[A-Za-z0-9._-]+):(?P<lease>[a-z][a-z0-9-]*)")


def mark(deployment: str, lease: str) -> str:
    """What is written into a machine."""
    return f"kettle:{deployment}:{lease}"


def marked(text: str) -> tuple[str, str] | None:
    """The deployment and the lease of a mark; None: this is none of ours."""
    found = _MARK.fullmatch(text.strip())
    return None if found is None else (found["deployment"], found["lease"])
