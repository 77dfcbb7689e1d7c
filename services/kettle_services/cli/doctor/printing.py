"""Findings, as people read them."""

from typing import Final

from kettle_services.cli.doctor.findings import Finding, Grade
from kettle_services.cli.output.screen import Screen

STYLES: Final[dict[Grade, str]] = {"problem": "bad", "warning": "held", "note": "idle", "good": "good"}
"""Of each grade, the worst first."""


def print_finding(found: Finding, screen: Screen) -> None:
    """What is where, and below it what to do."""
    grade = screen.paint(found.grade.upper(), STYLES[found.grade])
    screen.say(f"{grade}  {found.check}: {found.where}: {found.what}")
    if found.todo:
        screen.say(f"    {found.todo}")
