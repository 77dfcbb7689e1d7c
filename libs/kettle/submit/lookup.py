"""The commands of one queue statement, as one job after the other sees them."""

import random
from collections.abc import Mapping
from pathlib import Path
from typing import NoReturn

import msgspec

from kettle.submit.commands import NAMES
from kettle.submit.errors import PlacelessError, SubmitError
from kettle.submit.expressions import boolean
from kettle.submit.macros import CLUSTER, Expander
from kettle.submit.statements import Assignment, Queue
from kettle.submit.submit_machine import Disk, Site


class Setting(msgspec.Struct, frozen=True):
    """An expanded command and where it was given."""

    text: str
    assignment: Assignment

    def refuse(self, sentence: str) -> NoReturn:
        """Refuse the description because of this command."""
        raise self.assignment.refused(sentence)


class Lookup:
    """What the rules for the job ad are given: commands by name, the disk, the place."""

    def __init__(
        self,
        queue: Queue,
        *,
        site: Site,
        disk: Disk,
        cwd: Path,
        environ: Mapping[str, str],
        entropy: random.Random,
    ) -> None:
        self.queue = queue
        self.site = site
        self.disk = disk
        self.cwd = cwd
        self.environ = environ
        table = {key: assignment.text for key, assignment in queue.assignments.items()}
        self._expander = Expander(table, environ, entropy=entropy)

    def job(self, live: Mapping[str, str]) -> None:
        """Go on to the next job."""
        self._expander.live = live

    def watch(self) -> None:
        """From here on, `varied` says whether what was looked up may differ between jobs."""
        self._expander.varied = False

    @property
    def varied(self) -> bool:
        """Whether anything since `watch` depended on the job."""
        return self._expander.varied

    def get(self, name: str) -> Setting | None:
        """A command under any of its names, expanded; None if it is not given, or empty."""
        for spelling in (name, *NAMES.get(name, ())):
            assignment = self.queue.assignments.get(spelling.lower())
            if assignment is None:
                continue
            setting = self.expanded(assignment)
            if setting.text:
                return setting
        return None

    def expanded(self, assignment: Assignment) -> Setting:
        """An assignment with its macros replaced."""
        try:
            return Setting(self._expander.expand(assignment.text).strip(), assignment)
        except PlacelessError as error:
            raise assignment.refused(str(error)) from error

    def iwd(self) -> Path:
        """The directory that relative names of a job's files start from."""
        given = self.get("initialdir")
        return self.cwd / given.text if given else self.cwd

    def refuse(self, sentence: str) -> NoReturn:
        """Refuse the description because of what it does not say."""
        raise self.queue.refused(sentence)


def is_settled(path: Path | str) -> bool:
    """
    Whether a name is known now: not when the number of the cluster is part of it, or the matched machine's ad.
    """
    return CLUSTER not in str(path) and "$$(" not in str(path)


def readable(lookup: Lookup, given: Setting, name: str, *, what: str = "the input file") -> None:
    """Refuse a file of the submitter's that a command names and nobody can read."""
    path = lookup.iwd() / name
    if lookup.site.check_files and is_settled(path) and (why := lookup.disk.unreadable(path)):
        given.refuse(f"{what} {path} {why}")


def placed(setting: Setting, error: PlacelessError) -> SubmitError:
    """The error with the place of the command that it is about."""
    return setting.assignment.refused(str(error))


def flag(lookup: Lookup, name: str, *, default: bool) -> bool:
    """A command that is true or false."""
    given = lookup.get(name)
    if given is None:
        return default
    try:
        return boolean(given.text, name)
    except PlacelessError as error:
        raise placed(given, error) from error
