"""The commands of one queue statement, as one job after the other sees them."""

import random
from collections.abc import Mapping
from pathlib import Path
from typing import Final, NoReturn

import msgspec

from kettle.jobs.nodes import PLACEHOLDER
from kettle.jobs.quoting import QuotingError
from kettle.submit.commands import NAMES
from kettle.submit.errors import PlacelessError, SubmitError
from kettle.submit.expressions import boolean, unquoted
from kettle.submit.macros import CLUSTER, LONGEST, Expander
from kettle.submit.statements import Assignment, Queue
from kettle.submit.submit_machine import Disk, Site

_SPELLINGS: Final = {
    name: tuple(spelling.lower() for spelling in (name, *others)) for name, others in NAMES.items()
}
_MOST_NAMED: Final = 20
"""Missing files."""


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
        tolerant: bool = False,
    ) -> None:
        self.queue = queue
        self.tolerant = tolerant
        self.warnings: dict[str, None] = {}
        self._missing: dict[tuple[str, str], tuple[Setting, str]] = {}
        self.site = site
        self.disk = disk
        self.cwd = cwd
        self.environ = environ
        table = {key: assignment.text for key, assignment in queue.assignments.items()}
        self._expander = Expander(table, environ, entropy=entropy, longest=LONGEST)
        self._expander.directory = self._directory
        self._variables = {name.lower(): name for name in queue.iteration.variables}

    def job(self, live: Mapping[str, str]) -> None:
        """Go on to the next job."""
        self._expander.live = live

    @property
    def given(self) -> Mapping[str, Assignment]:
        """
        Everything that is assigned, by lower-case name: what the description says, and over it the variables of the queue
        statement, which may be commands.
        """
        if not self._variables:
            return self.queue.assignments
        return {**self.queue.assignments, **{key: self._row(key) for key in self._variables}}

    def _row(self, key: str) -> Assignment:
        return Assignment(
            self._variables[key], self._expander.live[key], self.queue.source, self.queue.line, of_row=True
        )

    def _directory(self) -> str:
        """Where `$Ff()` starts."""
        return str(self.iwd())

    def watch(self) -> None:
        """From here on, `varied` says whether what was looked up may differ between jobs."""
        self._expander.varied = False

    @property
    def seen(self) -> set[str]:
        """The names that were of use, in lower case."""
        return self._expander.seen

    @property
    def varied(self) -> bool:
        """Whether anything since `watch` depended on the job."""
        return self._expander.varied

    def get(self, name: str) -> Setting | None:
        """A command under any of its names, expanded; None if it is not given, or empty."""
        for key in _SPELLINGS.get(name) or (name.lower(),):
            assignment = self._row(key) if key in self._variables else self.queue.assignments.get(key)
            if assignment is None:
                continue
            setting = self.expanded(assignment)
            if setting.text:
                return setting
        return None

    def expanded(self, assignment: Assignment) -> Setting:
        """An assignment with its macros replaced."""
        self._expander.seen.add(assignment.name.lower())
        if assignment.of_row:
            self._expander.varied = True
        try:
            return Setting(self._expander.expand(assignment.text).strip(), assignment)
        except PlacelessError as error:
            raise assignment.refused(str(error)) from error

    def iwd(self) -> Path:
        """The directory that relative names of a job's files start from."""
        self._expander.directory = (
            self.cwd.__str__
        )  # the directory may itself be named with the help of $Ff()
        try:
            given = self.get("initialdir")
        finally:
            self._expander.directory = self._directory
        return self.cwd / unquoted(given.text) if given else self.cwd

    @property
    def checks_files(self) -> bool:
        """Whether the files that jobs read and write are looked at before they are submitted."""
        if not self.site.check_files or self.site.skip_filechecks:
            return False
        given = self.get("skip_filechecks")
        return (
            given is None or given.text.lower() == "warn" or not flag(self, "skip_filechecks", default=False)
        )

    def missing(self, setting: Setting, what: str, path: Path, why: str) -> None:
        """
        A file that cannot be used.  All of them are told of together, at the end; `skip_filechecks = warn` only warns.
        """
        given = self.get("skip_filechecks")
        if given is not None and given.text.lower() == "warn":
            self.warnings.setdefault(str(setting.assignment.refused(f"{what} {path} {why}")))
        else:
            self._missing.setdefault((what, str(path)), (setting, why))

    def refuse_missing(self) -> None:
        """Refuse the description if files cannot be used, and name them."""
        if not self._missing:
            return
        sentences = [f"{what} {path} {why}" for (what, path), (_, why) in self._missing.items()]
        (setting, _), *_ = self._missing.values()
        shown = "; ".join(sentences[:_MOST_NAMED])
        more = f"; and {len(sentences) - _MOST_NAMED} more" if len(sentences) > _MOST_NAMED else ""
        setting.refuse(f"{shown}{more}")

    def idle(self, setting: Setting, sentence: str) -> None:
        """
        A command that has no effect where it stands: a warning in descriptions for HTCondor, and refused in others.
        """
        if not self.tolerant:
            setting.refuse(sentence)
        self.warnings.setdefault(str(setting.assignment.refused(sentence)))

    def refuse(self, sentence: str) -> NoReturn:
        """Refuse the description because of what it does not say."""
        raise self.queue.refused(sentence)


def is_settled(path: Path | str) -> bool:
    """
    Whether a name is known now: not when the number of the cluster or a node is part of it, or the matched machine's ad.
    """
    return not any(later in str(path) for later in (CLUSTER, "$$(", PLACEHOLDER))


def readable(lookup: Lookup, given: Setting, name: str, *, what: str = "the input file") -> None:
    """Miss a file of the submitter's that a command names and nobody can read."""
    path = lookup.iwd() / name
    if is_settled(path) and lookup.checks_files and (why := lookup.disk.unreadable(path)):
        lookup.missing(given, what, path, why)


def placed(setting: Setting, error: PlacelessError | QuotingError) -> SubmitError:
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
