"""What an examination finds."""

from typing import Literal

import msgspec

Grade = Literal["good", "note", "warning", "problem"]
"""`note`: worth knowing; `warning`: it works now, but not for long or not under load; `problem`: something does not work."""


class Finding(msgspec.Struct, frozen=True, kw_only=True):
    """One sentence about one thing."""

    check: str
    grade: Grade
    where: str
    what: str
    todo: str = ""
    """What to do; empty: nothing."""


def good(check: str, where: str, what: str) -> Finding:
    """As it should be."""
    return Finding(check=check, grade="good", where=where, what=what)


def note(check: str, where: str, what: str, todo: str = "") -> Finding:
    """Worth knowing."""
    return Finding(check=check, grade="note", where=where, what=what, todo=todo)


def warning(check: str, where: str, what: str, todo: str) -> Finding:
    """It works now, but not for long or not under load."""
    return Finding(check=check, grade="warning", where=where, what=what, todo=todo)


def problem(check: str, where: str, what: str, todo: str) -> Finding:
    """It does not work, or is not safe."""
    return Finding(check=check, grade="problem", where=where, what=what, todo=todo)
