"""How many ways a matcher that goes back on its choices can be made to try a pattern."""

import re
from typing import Final

_TOKEN: Final = re.compile(
    rb"\\(?P<reference>[1-9])|\(\?P=(?P<named>)|\\.|\[\^?\]?(?:\\.|[^\]\\])*\]|(?P<open>\(\??)|(?P<close>\))|(?P<or>\|)"
    rb"|(?P<repeat>[*+?]|\{(?P<least>[0-9]*)(?P<most>,[0-9]*)?\})[+?]?",
    re.DOTALL,
)
_UNREADABLE: Final = re.compile(rb"\(\?#|\(\?[a-zA-Z-]*x|\(\?\(")
"""Comments and conditions: what stands in them is not what it seems."""
_MOST: Final = 1000


def ways(pattern: bytes, length: int, *, limit: int) -> int | None:
    """
    A bound of the steps to look for `pattern`, in the syntax of `re`, in a text of so many octets; None beyond `limit`.

    It is the product of the choices at all places at which there is one.
    A choice within what is itself repeated has no bound here.
    """
    if _UNREADABLE.search(pattern):
        return None
    product = length + 1  # where to start
    holds_choice: list[bool] = [False]
    closed_choice = False
    for token in _TOKEN.finditer(pattern):
        if token["open"] is not None:
            holds_choice.append(False)
        choices, was_choice, closed_choice = _choices(token, length), closed_choice, False
        if token["close"] is not None and len(holds_choice) > 1:
            closed_choice = holds_choice.pop()
            holds_choice[-1] |= closed_choice
        if choices is None or (token["repeat"] is not None and was_choice and _follows(pattern, token)):
            return None
        if choices > 1:
            holds_choice[-1] = True
            product *= choices
        if product > limit:
            return None
    return product


def _follows(pattern: bytes, token: re.Match[bytes]) -> bool:
    return pattern[: token.start()].endswith(b")")


def _choices(token: re.Match[bytes], length: int) -> int | None:
    """How many ways there are to continue at a token; None if the number is too large or unknown."""
    if token["or"] is not None:
        return 2
    if token["reference"] is not None or token["named"] is not None:
        return length + 2
    if token["repeat"] is None:
        return 1
    if token["least"] is None:
        return 2 if token["repeat"][:1] == b"?" else length + 2
    bounds = [int(number or b"0") for number in (token["least"], (token["most"] or b",")[1:])]
    if max(bounds) > _MOST:
        return None
    unbounded = token["most"] == b","
    return max(length if unbounded else 0, *bounds) + 2
