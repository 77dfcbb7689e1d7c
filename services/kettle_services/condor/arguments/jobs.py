"""Which jobs a command selects: ids, clusters, users and a constraint, as in HTCondor's commands."""

import re
from typing import Final

import msgspec

from kettle_services.condor.errors import WordsError
from kettle_wire.commands.queue import Select
from kettle_wire.jobs import JobId

_ID: Final = re.compile(r"(\d{1,10})(?:\.(\d{1,10}))?\.?", re.ASCII)
_PERSON: Final = re.compile(r"[A-Za-z_][\w.@+-]*")
_LARGEST: Final = 2**31 - 1


class JobSelection(msgspec.Struct):
    """What was named, in order and by kind."""

    jobs: list[JobId] = []
    clusters: list[int] = []
    owners: list[str] = []
    constraint: str = ""

    @property
    def anything(self) -> bool:
        """Whether anything was named."""
        return bool(self.jobs or self.clusters or self.owners or self.constraint)

    def take(self, word: str) -> None:
        """An id, a cluster, or the name of a person; raises WordsError."""
        if match := _ID.fullmatch(word):
            cluster, proc = int(match[1]), match[2]
            if cluster > _LARGEST or int(proc or 0) > _LARGEST:
                raise WordsError(f"'{word}' is not the id of a job: it is too large")
            if proc is None:
                self.clusters.append(cluster)
            else:
                self.jobs.append(JobId(cluster, int(proc)))
        elif _PERSON.fullmatch(word):
            self.owners.append(owner(word))
        else:
            raise WordsError(
                f"'{word}' is neither the id of a job nor a user: write CLUSTER, CLUSTER.PROC or a name"
            )

    def require(self, expression: str) -> None:
        """One more condition; raises WordsError."""
        checked(expression)
        self.constraint = both(self.constraint, expression)

    def select(self) -> Select:
        """
        All of it at once: a job that is listed, or in a listed cluster, or of a listed person, and meets the condition.
        """
        return Select(jobs=self.jobs, clusters=self.clusters, owners=self.owners, constraint=self.constraint)


def one_job(word: str) -> JobId:
    """The id of one job; a cluster alone means its first.  Raises WordsError."""
    if match := _ID.fullmatch(word):
        cluster, proc = int(match[1]), int(match[2] or 0)
        if max(cluster, proc) <= _LARGEST:
            return JobId(cluster, proc)
    raise WordsError(f"'{word}' is not the id of a job: write CLUSTER.PROC or CLUSTER, as in 12.0 or 12")


def owner(name: str) -> str:
    """The login name of a person; HTCondor's tools also take it with a domain."""
    return name.partition("@")[0]


def both(one: str, other: str) -> str:
    """Two conditions as one."""
    return f"({one}) && ({other})" if one and other else one or other


def checked(expression: str) -> str:
    """The expression, if it is one; raises WordsError."""
    from kettle.classad import ClassAdParseError, parse

    try:
        parse(expression)
    except ClassAdParseError as error:
        raise WordsError(f"Parse error: the constraint '{expression}' cannot be read: {error}") from error
    return expression
