"""How often Python looks for garbage while millions of things are made that stay."""

import gc
from collections.abc import Generator
from contextlib import contextmanager
from typing import Final

_YOUNG, _MIDDLE, _OLD = 100_000, 50, 1_000
"""As `gc.set_threshold` has them."""
_USUAL: Final = 700
"""Of the young ones, where nobody has set it."""


@contextmanager
def seldom_collected() -> Generator[None]:
    """
    As long as it lasts, garbage in circles is looked for seldom.

    What a simulation makes is freed as soon as nothing refers to it; to go through all that stays, again and again, takes a quarter of
    its time.
    """
    before = gc.get_threshold()
    if before[0] <= _USUAL and gc.isenabled():
        gc.set_threshold(_YOUNG, _MIDDLE, _OLD)
    try:
        yield
    finally:
        gc.set_threshold(*before)
