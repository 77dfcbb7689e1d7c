"""What a route says of itself: macros whose names have a meaning, read once with the file."""

import math
import re
from typing import Any, Final

from kettle.classad import ClassAdParseError, Node, evaluate, parse
from kettle.routes.table import OnLocalRemove
from kettle_wire.codes import Universe

SETTINGS: Final = {
    "targetuniverse": "universe",
    "gridresource": "grid_resource",
    "maxjobs": "max_jobs",
    "maxidlejobs": "max_idle_jobs",
    "failureratethreshold": "failure_rate_threshold",
    "jobfailuretest": "job_failure_test",
    "editjobinplace": "edit_job_in_place",
    "weight": "weight",
    "rank": "rank",
    "onlocalremove": "on_local_remove",
}
"""Name of the macro in lower case -> field of a route."""
_WITHOUT_RESOURCE: Final = {"docker": Universe.VANILLA, "container": Universe.VANILLA}
_RETRY: Final = re.compile(r"retry\s*(?:\(\s*(\d+)\s*\))?")


class SettingError(ValueError):
    """A setting that makes no sense; the message is one sentence."""

    def __init__(self, line: int, sentence: str) -> None:
        super().__init__(sentence)
        self.line = line


class RouteSettings:
    """The settings of one route, as they are read."""

    def __init__(self, *, max_jobs: str = "", max_idle_jobs: str = "") -> None:
        """With the defaults that a file sets for all its routes."""
        self._fields: dict[str, Any] = {}
        if max_jobs:
            self.take("maxjobs", max_jobs, 0)
        if max_idle_jobs:
            self.take("maxidlejobs", max_idle_jobs, 0)

    def of_route(self) -> dict[str, Any]:
        """The fields of the route that differ from their defaults."""
        return self._fields

    def universe(self, text: str, line: int) -> None:
        """The statement UNIVERSE."""
        word = text.strip().strip('"').lower()
        known = {each.name.lower(): each for each in Universe} | _WITHOUT_RESOURCE
        if word.isdecimal() and int(word) in set(Universe):
            self._fields["universe"] = int(word)
        elif word in known:
            self._fields["universe"] = int(known[word])
        else:
            raise SettingError(line, f"there is no universe '{text}'")

    def take(self, key: str, text: str, line: int) -> None:
        """One macro that has a meaning; raises SettingError."""
        field = SETTINGS[key]
        match field:
            case "universe":
                self.universe(text, line)
            case "grid_resource":
                self._fields[field] = text.strip().removeprefix('"').removesuffix('"').strip()
            case "max_jobs" | "max_idle_jobs":
                self._fields[field] = self._number(key, text, line, whole=True)
            case "weight" | "failure_rate_threshold":
                self._fields[field] = self._number(key, text, line, whole=False)
            case "edit_job_in_place" | "rank":
                self._fields[field] = self._expression(key, text, line)
            case "job_failure_test":
                self._expression(key, text, line)
                self._fields[field] = text
            case _:
                self._on_local_remove(text, line)

    def _number(self, key: str, text: str, line: int, *, whole: bool) -> float:
        try:
            value = evaluate(parse(text))
        except ClassAdParseError:
            value = text
        sound = isinstance(value, int if whole else int | float) and not isinstance(value, bool)
        if not sound or not isinstance(value, int | float) or not math.isfinite(value) or value <= 0:
            kind = "a whole number above zero" if whole else "a number above zero"
            raise SettingError(line, f"{key} must be {kind}, not '{text}'")
        return value

    def _expression(self, key: str, text: str, line: int) -> Node:
        try:
            return parse(text)
        except ClassAdParseError as error:
            raise SettingError(line, f"{key} is no expression: {error.sentence}") from error

    def _on_local_remove(self, text: str, line: int) -> None:
        word = text.strip().strip('"').lower()
        if found := _RETRY.fullmatch(word):
            self._fields |= {"on_local_remove": OnLocalRemove.RETRY, "retries": int(found[1] or 1)}
        elif word in set(OnLocalRemove):
            self._fields["on_local_remove"] = OnLocalRemove(word)
        else:
            raise SettingError(line, f"OnLocalRemove is '{text}': write fail, hold or retry(n)")
