"""
The lines of what people write: descriptions, configuration, transforms; and how one goes on in the next.
"""

from collections.abc import Callable


def lines_of(text: str) -> list[str]:
    """
    What stands between line feeds, without a carriage return at the end.

    Nothing else ends a line, as in HTCondor: a value with U+2028 or a form feed in it would be cut there, and what follows it,
    which may be somebody else's text, would be a statement.
    """
    return [line.removesuffix("\r") for line in text.removesuffix("\n").split("\n")] if text else []


def joined(first: str, following: Callable[[], str | None], *, trimmed: bool = True) -> str:
    """
    A line with those that it goes on in: behind a backslash at its end comes the next one, which `following` gives.

    One that is commented out adds nothing; what comes after it is reached if it ends with a backslash as well, as in HTCondor.
    `trimmed`: without blanks around what is added.
    """
    text = first
    while text.endswith("\\"):
        text, more = text[:-1], following() or ""
        bare = more.strip()
        if not bare.startswith("#"):
            text += bare if trimmed else more
        elif bare.endswith("\\"):
            text += "\\"
    return text.strip() if trimmed else text
