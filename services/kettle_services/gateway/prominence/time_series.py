"""
Time series of jobs: points that a job sends while it runs, one file of lines for each job, kept as long as results.

A job shows the token that is in its environment; what it has sent is its owner's to read.
"""

import asyncio
import math
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Annotated, Final

import msgspec
from aiohttp import web

from kettle.auth.mapping.levels import Level
from kettle.auth.private_files import private_directory
from kettle.prominence.addresses import file_name
from kettle.prominence.instances import IDENTIFIER
from kettle_services.gateway.prominence.application import Asked, OpenRoute, Route, refused, reply, token_of
from kettle_services.gateway.prominence.job_lists import JobLists, one
from kettle_services.gateway.prominence.numbers import NUMBER
from kettle_services.gateway.prominence.signatures import Signer

LARGEST: Final = 16_384
"""Bytes of one point."""
MOST: Final = 16 << 20
"""Bytes of all points of one job."""
MOST_JOBS: Final = 500_000
"""Jobs of one owner that have points, each of which is a file."""
_LOOK_S: Final = 3600.0
_MINUTE_S: Final = 60.0

_Name = Annotated[str, msgspec.Meta(min_length=1, max_length=256)]


class Point(msgspec.Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """What a job has measured."""

    measurement: _Name
    fields: Annotated[dict[_Name, float], msgspec.Meta(min_length=1, max_length=256)]
    tags: Annotated[dict[_Name, _Name], msgspec.Meta(max_length=64)] = {}
    time: float | None = None
    """Seconds since the epoch; None: when it came."""


class Used(msgspec.Struct):
    """
    What the points of one owner's jobs take: nothing else bounds how many jobs one who runs a workflow says that there are.
    """

    jobs: int = 0
    size: int = 0
    """Bytes."""


class TimeSeries:
    """Keeps them in a directory of the gateway, where nobody else writes while this process lives."""

    def __init__(self, directory: Path, kept: float, most: Used, signer: Signer, lists: JobLists) -> None:
        """`kept`: seconds after the last point of a job for which its points stay; `most`: of one owner."""
        self._directory = private_directory(directory)
        self._kept = kept
        self._most = most
        self._used: dict[str, Used] = {}
        """By owner, of those who have sent something since it was looked at last."""
        self._signer = signer
        self._lists = lists

    def routes(self) -> Sequence[Route]:
        """What is asked with a token of a person."""
        return (Route("GET", f"/ts/{NUMBER}", Level.READ, self.show),)

    def open_routes(self) -> Sequence[OpenRoute]:
        """What is asked with the token of a job."""
        return (OpenRoute("POST", "/ts", self.add),)

    async def add(self, request: web.Request) -> web.StreamResponse:
        """One more point of a job."""
        now = time.time()
        owner, identifier = self._signer.job_of(token_of(request), now=now)
        body = await request.read()
        if len(body) > LARGEST:
            raise refused(f"a point has {LARGEST:,} bytes at most, and this one has {len(body):,}")
        try:
            point = msgspec.json.decode(body, type=Point)
        except (msgspec.MsgspecError, UnicodeDecodeError) as error:
            raise refused(f"the body is no point of a time series: {error}") from error
        if point.time is None:
            point = msgspec.structs.replace(point, time=now)
        if not all(map(math.isfinite, point.fields.values())):
            raise refused("a field of a point is a finite number")
        await self._add(owner, self._file(owner, identifier), b"\n" + msgspec.json.encode(point))
        return reply({}, 201)

    async def _add(self, owner: str, path: Path, line: bytes) -> None:
        """Raises RequestRefused: there is no room for it."""
        if owner not in self._used:
            found = await asyncio.to_thread(_measured, path.parent)
            self._used.setdefault(owner, found)
        used, most = self._used[owner], self._most
        if used.size + len(line) > most.size:
            raise refused(
                f"the points of all jobs of {owner} would have more than {most.size:,} bytes: there is room again when older ones are gone"
            )
        room = used.jobs < most.jobs
        if await asyncio.to_thread(_append, path, line, is_new_welcome=room):
            used.jobs += 1
        used.size += len(line)

    async def show(self, asked: Asked) -> web.StreamResponse:
        """The points of a job from some minutes ago on, to some minutes ago; or the mean of each field."""
        now = time.time()
        start, stop = (_minutes(asked, name, now) for name in ("start", "stop"))
        found = await self._lists.find(asked, one(asked.path_number()))
        if not found:
            raise refused(f"there is no job {asked.path_number()} of yours")
        identifier = str((found[0].attributes or {}).get(IDENTIFIER, ""))
        shown = [
            each
            for each in await self.points(asked.person.name, identifier)
            if each.time is not None
            and (start is None or start <= each.time)
            and (stop is None or each.time <= stop)
        ]
        return reply(means(shown) if asked.has("mean") else shown)

    async def points(self, owner: str, identifier: str) -> list[Point]:
        """All that a job has sent, as it came."""
        return await asyncio.to_thread(_read, self._file(owner, identifier))

    async def keep_house(self) -> None:
        """Remove what was sent long ago; never returns."""
        while True:
            await asyncio.to_thread(self.forget, time.time() - self._kept)
            self._used.clear()
            await asyncio.sleep(_LOOK_S)

    def forget(self, before: float) -> None:
        """Remove the points of jobs that have sent nothing since, seconds since the epoch."""
        for path in self._directory.glob("*/*"):
            if path.stat().st_mtime < before:
                path.unlink(missing_ok=True)

    def _file(self, owner: str, identifier: str) -> Path:
        return self._directory / file_name(owner) / file_name(identifier)


def means(points: Sequence[Point]) -> Mapping[str, Mapping[str, float]]:
    """By measurement and field the mean of all points."""
    sums: dict[str, dict[str, list[float]]] = {}
    for point in points:
        of_measurement = sums.setdefault(point.measurement, {})
        for name, value in point.fields.items():
            of_measurement.setdefault(name, []).append(value)
    return {
        measurement: {name: math.fsum(values) / len(values) for name, values in fields.items()}
        for measurement, fields in sums.items()
    }


def _minutes(asked: Asked, name: str, now: float) -> float | None:
    """The moment that is so many minutes ago; None: nothing is said."""
    return now - asked.number(name) * _MINUTE_S if asked.has(name) else None


def _append(path: Path, line: bytes, *, is_new_welcome: bool) -> bool:
    """Whether it is the first one of a job.  Raises RequestRefused: these are too many."""
    private_directory(path.parent)
    is_new = not path.exists()
    if is_new and not is_new_welcome:
        raise refused("too many jobs of this owner have points: there is room again when older ones are gone")
    with path.open("ab") as file:
        if file.tell() + len(line) > MOST:
            raise refused(f"the points of a job have {MOST >> 20} MiB at most together")
        file.write(line)
    return is_new


def _measured(directory: Path) -> Used:
    used = Used()
    for path in directory.glob("*"):
        with suppress(FileNotFoundError):  # it is forgotten at this moment
            used.size += path.stat().st_size
            used.jobs += 1
    return used


def _read(path: Path) -> list[Point]:
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        return []
    return list(_points(data))


def _points(data: bytes) -> Iterator[Point]:
    decoder = msgspec.json.Decoder(Point)
    for line in filter(None, data.split(b"\n")):
        with suppress(msgspec.DecodeError):  # a line that was cut off, because the disk was full
            yield decoder.decode(line)
