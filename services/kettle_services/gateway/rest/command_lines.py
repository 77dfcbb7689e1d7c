"""What a job runs, as one would type it in a shell."""

import shlex
from collections.abc import Mapping
from typing import Final

from kettle.jobs.quoting import QuotingError, split_v2
from kettle_wire.ads.types import Ad, Expr, Scalar

COMMAND_ATTRIBUTES: Final = ("Cmd", "Args", "Arguments")
"""What a command is made of."""


def short_command(ad: Ad) -> str:
    """The program without its directory, with its arguments: for lists."""
    values: dict[str, str] = {name: value_text(ad[name]) for name in COMMAND_ATTRIBUTES if name in ad}
    return command_of(values.get("Cmd", "").rpartition("/")[2], values)


def command_of(program: str, values: Mapping[str, str]) -> str:
    """
    A program with its arguments as one would type them in a shell; as they are kept where that is not possible.
    """
    words = values.get("Arguments", "")
    try:
        arguments = shlex.join(split_v2(words))
    except QuotingError:
        arguments = words
    return f"{program} {arguments or values.get('Args', '')}".strip()


def value_text(value: Scalar) -> str:
    """A value of an ad: texts without quotes, expressions as they are."""
    match value:
        case bool():
            return str(value).lower()
        case Expr(expr=text):
            return text
        case _:
            return str(value)
