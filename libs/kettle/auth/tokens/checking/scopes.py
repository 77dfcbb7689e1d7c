"""The form of scopes: which are capabilities, and which make a whole token bad."""

from collections.abc import Iterable
from typing import Final
from urllib.parse import unquote

from kettle.auth.tokens.verified import TokenCode, TokenError, quoted

_FAMILIES: Final = ("storage.", "compute.")
_SCITOKENS: Final = frozenset({"condor", "read", "write", "queue", "execute"})
"""Names of capabilities of SciTokens, which have a path behind a colon."""
_STORAGE: Final = "storage."


def is_capability(scope: str) -> bool:
    """Whether the scope is a right, and not a wish for claims as `openid` or `profile`."""
    name, colon, _path = scope.partition(":")
    return name.startswith(_FAMILIES) or (bool(colon) and name in _SCITOKENS)


def check_storage_scopes(scopes: Iterable[str]) -> None:
    """Raises TokenError: a storage scope has no path, or one that means another place than it says."""
    for scope in scopes:
        if not scope.startswith(_STORAGE):
            continue
        path = scope.partition(":")[2]
        if not path.startswith("/") or not has_one_meaning(path):
            raise TokenError(
                TokenCode.SCOPE,
                f"the scope {quoted(scope)} is refused with its whole token: storage scopes have a path from / on, without"
                " . and .. in it",
            )


def has_one_meaning(path: str) -> bool:
    """
    Whether nobody can read the path as another one, not even after decoding what is written with percent signs.
    """
    decoded = unquote(path)
    if decoded.count("/") != path.count("/") or "%" in decoded:
        return False
    return "//" not in decoded and not any(part in {".", ".."} for part in decoded.split("/"))
