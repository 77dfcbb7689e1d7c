"""
Which files the events of a job go into, and how they are written there.

Pure.  A job's own log, the log in which DAGMan reads about its nodes, and the log of the access point.
"""

from collections.abc import Collection, Mapping
from functools import lru_cache
from pathlib import PurePosixPath
from typing import Final, NamedTuple, Protocol

from kettle.userlog.formats import CLASSIC, Form, Format, format_of
from kettle_wire.ads.types import Scalar

OWN: Final = ("UserLog", "DAGManNodesLog")
"""The attributes that name a job's files."""


class Route(NamedTuple):
    """One file."""

    path: PurePosixPath
    written: Format = CLASSIC
    information: tuple[str, ...] = ()
    """Attributes of the job that are written with each event, as event 028."""
    numbers: frozenset[int] | None = None
    """The events that are wanted; None: all."""


class Routes(Protocol):
    """Where to."""

    def has_any(self, names: Collection[str]) -> bool:
        """Whether jobs whose ads have such names may have a file at all."""
        ...

    def wants_ads(self, names: Collection[str]) -> bool:
        """Whether files of such jobs may contain attributes of their ads."""
        ...

    def of(self, ad: Mapping[str, Scalar], options: str) -> list[Route]:
        """The files of a job; `options` are how logs were written when it was submitted."""
        ...


class OwnLogs:
    """Those that the jobs name themselves."""

    def has_any(self, names: Collection[str]) -> bool:
        """Whether there is a name of a file."""
        return any(name in names for name in OWN)

    def wants_ads(self, names: Collection[str]) -> bool:
        """Those that say so."""
        return "JobAdInformationAttrs" in names

    def of(self, ad: Mapping[str, Scalar], options: str) -> list[Route]:
        """
        The job's own log, then that of its workflow; a path that is relative to nothing is nobody's file.
        """
        routes: list[Route] = []
        if (path := _path(ad, "UserLog")) is not None:
            written = format_of(options)
            if ad.get("UserLogUseXML") is True:
                written = Format(Form.XML, written.iso_date, written.utc, written.sub_second)
            routes.append(Route(path, written, names_in(ad.get("JobAdInformationAttrs"))))
        if (path := _path(ad, "DAGManNodesLog")) is not None:
            # Whatever the access point prefers: a workflow's log is of many submissions, and has one form.
            routes.append(Route(path, numbers=_numbers(names_in(ad.get("DAGManNodesMask")))))
        return routes


class OneLog:
    """The route of the access point's log: everything of all jobs."""

    def __init__(self, route: Route) -> None:
        self._route = route

    def has_any(self, names: Collection[str]) -> bool:
        """All jobs are written."""
        del names
        return True

    def wants_ads(self, names: Collection[str]) -> bool:
        """All or none."""
        del names
        return bool(self._route.information)

    def of(self, ad: Mapping[str, Scalar], options: str) -> list[Route]:
        """The one file."""
        del ad, options
        return [self._route]


def names_in(value: Scalar | None) -> tuple[str, ...]:
    """The names of a list of attributes."""
    return _listed(value) if isinstance(value, str) else ()


@lru_cache(maxsize=256)
def _listed(text: str) -> tuple[str, ...]:
    return tuple(text.replace(",", " ").split())


def _path(ad: Mapping[str, Scalar], name: str) -> PurePosixPath | None:
    log, iwd = ad.get(name), ad.get("Iwd")
    if not isinstance(log, str) or not log:
        return None
    return _absolute(iwd if isinstance(iwd, str) else "", log)


@lru_cache(maxsize=1024)
def _absolute(directory: str, log: str) -> PurePosixPath | None:
    """Jobs with the same log come together, each with several events."""
    path = PurePosixPath(directory, log)
    return path if path.is_absolute() else None


@lru_cache(maxsize=256)
def _numbers(words: tuple[str, ...]) -> frozenset[int] | None:
    """Nodes of a workflow have one list, and it is asked for with each event of theirs."""
    numbers = [int(word) for word in words if word.isdecimal()]
    return frozenset(numbers) if numbers else None
