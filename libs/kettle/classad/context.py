"""
Where an evaluation gets what is not in the ads.

The library itself reads no clock, draws no number and knows no users: the caller of an evaluation provides them. What
is missing here is undefined in expressions.
"""

from collections.abc import Callable
from typing import Final

import msgspec


class Context(msgspec.Struct, frozen=True, kw_only=True):
    """
    The world as an expression may see it.

    `now` is seconds since 1970, `random` a real in [0, 1), `utc_offset` the local zone in seconds east of UTC
    at an instant, `home` a user's home directory, `user_map` what a named map says about a user,
    `trace` receives what `debug()` reports.

    An evaluation is given up where it goes down more than `max_depth` levels or takes more than `max_steps`.
    Levels: each operator, call, subscript and point is one while what it applies to is evaluated, each attribute is
    one while it is, and what a function evaluates itself is a few levels below its call.
    Steps: an expression costs its size, the number of nodes that evaluating it may visit, whenever it is entered:
    the one evaluated, each attribute, member of a list, argument or text that is evaluated on the way; a function
    that does more work than its arguments show adds that.
    """

    now: Callable[[], int] | None = None
    random: Callable[[], float] | None = None
    utc_offset: Callable[[int], int] | None = None
    home: Callable[[str], str | None] | None = None
    user_map: Callable[[str, str], str | None] | None = None
    trace: Callable[[str], None] | None = None
    max_depth: int = 400
    max_steps: int = 10_000_000
    max_table_steps: int | None = None
    """
    Steps that may be taken in all rows of a table together.

    In the remaining rows, an expression then fails: services that evaluate many ads for many users set it.
    """


FOREIGN_STEPS: Final = 20_000
"""
What a daemon allows an expression that somebody sent it: Requirements take 50 steps, 20,000 some 10 milliseconds.
"""

NOTHING: Final = Context()
"""A context for expressions that depend on nothing but ads."""
