"""Numbers of workers and sizes as they are typed."""

import argparse
from typing import Final

_MOST: Final = 10**9


def size_argument(text: str) -> int:
    """A whole number from 0 on."""
    if not text.isascii() or not text.isdecimal() or int(text) > _MOST:
        raise argparse.ArgumentTypeError(f"'{text}' is no whole number, as 4")
    return int(text)


def adapt_argument(text: str) -> tuple[int, int]:
    """`MIN:MAX`."""
    least, colon, most = text.partition(":")
    if not colon:
        raise argparse.ArgumentTypeError(f"'{text}' is not MIN:MAX, as 0:50")
    found = size_argument(least), size_argument(most)
    if found[0] > found[1]:
        raise argparse.ArgumentTypeError(f"'{text}': the smaller number stands first, as 0:50")
    return found
