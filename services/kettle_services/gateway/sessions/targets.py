"""Where a browser is led after it has signed in or out: never to another site, whatever an address says."""

from typing import Final

_LONGEST: Final = 2_000


def own_target(said: str, *, above: str = ".") -> str:
    """
    An address relative to the page that leads there, so that it holds behind a proxy that puts a path before ours.

    `said`: a path of ours with its query, as somebody's address has it; what is none leads to the first page. `above`: the way
    from the page that leads there to the root.
    """
    printable = said.isascii() and said.isprintable() and len(said) <= _LONGEST
    path = said if printable and said.startswith("/") and not said.startswith(("//", "/\\")) else "/"
    return f"{above}{path}"
