"""`kettle log show`: events in order."""

import argparse
import asyncio
import heapq
import json
from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from contextlib import AsyncExitStack, aclosing
from pathlib import Path
from typing import Final

import msgspec

from kettle.client import home_directory
from kettle.eventsourcing.log import LogError
from kettle_services.cli.errors import CommandError, UsageError
from kettle_services.cli.log.databases import ShardLocation, places_of
from kettle_services.cli.log.event_owners import Owners
from kettle_services.cli.log.event_pages import EventFilter, EventRow, pattern_of, read
from kettle_services.cli.log.event_sentences import EventSentence, told
from kettle_services.cli.log.frame_search import frame_at
from kettle_services.cli.log.live_events import Followed
from kettle_services.cli.output.screen import Screen
from kettle_services.cli.times import precise, rfc3339
from kettle_wire.events import ClusterSubmitted, UnknownEventError, decode
from kettle_wire.jobs import JobId

_QUEUES: Final = "schedd."


def run(arguments: argparse.Namespace, screen: Screen) -> int:
    """Print them."""
    home: Path = arguments.home or home_directory()
    try:
        asyncio.run(_show(home, arguments, screen))
    except LogError as error:
        raise CommandError(f"{error}; kettle log check tells what is wrong") from error
    return 0


async def _show(home: Path, arguments: argparse.Namespace, screen: Screen) -> None:
    if arguments.frame is not None and arguments.shard is None:
        raise UsageError(
            "frames are numbered in each shard: name one, as in kettle log show schedd.ap1 --frame 1:9"
        )
    if arguments.follow and arguments.simulated is not None:
        raise UsageError("a simulated pool is over: nothing follows")
    if arguments.follow and (arguments.until is not None or (arguments.frame or (0, None))[1] is not None):
        raise UsageError("--follow has no end: leave out --until, and the last frame")
    async with AsyncExitStack() as stack:
        found = await stack.enter_async_context(places_of(arguments, home))
        named = found.named([arguments.shard] if arguments.shard else [])
        chosen = [(place, await _narrow(place, arguments)) for place in _worth(named, arguments)]
        printer = Printer(screen, [place for place, _ in chosen], long=arguments.long, most=arguments.limit)
        await printer.show(_merged([_of(place, narrow, arguments.owner) for place, narrow in chosen]))
        if not arguments.follow or printer.full:
            if printer.empty:
                screen.note("No recorded event fits.")
            return
        followed = await stack.enter_async_context(Followed.open(home, chosen, patience=arguments.patience))
        async with aclosing(followed.news()) as news:
            async for place, narrow in news:
                await printer.show(_of(place, narrow, arguments.owner))
                if printer.full:
                    return
                screen.flush()


def _worth(found: list[ShardLocation], arguments: argparse.Namespace) -> list[ShardLocation]:
    """Where jobs are asked for, shards without jobs need not be read."""
    if arguments.job is None and arguments.cluster is None:
        return found
    return [place for place in found if place.shard.startswith(_QUEUES)]


async def _narrow(place: ShardLocation, arguments: argparse.Namespace) -> EventFilter:
    first, last = arguments.frame or (1, None)
    after, until = first - 1, place.tenure.frame if last is None else min(last, place.tenure.frame)
    if arguments.since is not None:
        after = max(after, await frame_at(place.log, place.shard, place.tenure.frame, arguments.since - 1))
    if arguments.until is not None:
        until = min(until, await frame_at(place.log, place.shard, place.tenure.frame, arguments.until))
    return EventFilter(
        after=after,
        until=until,
        types=[pattern_of(text) for text in arguments.type],
        streams=frozenset(await _streams(place, arguments)),
    )


async def _streams(place: ShardLocation, arguments: argparse.Namespace) -> list[str]:
    streams: list[str] = list(arguments.stream)
    if arguments.job is not None:
        job: JobId = arguments.job
        streams += [f"cluster/{job.cluster}", f"job/{job}"]
    if arguments.cluster is not None:
        name = f"cluster/{arguments.cluster}"
        streams.append(name)
        for frame, _ in await place.log.stream(place.shard, name):
            try:
                submitted = decode(frame.entries[0].data)
            except UnknownEventError:
                continue  # it is shown as what it is; its jobs have to be asked for by --job
            if isinstance(submitted, ClusterSubmitted):
                streams += [f"job/{arguments.cluster}.{proc}" for proc in range(len(submitted.rows))]
    return streams


async def _of(
    place: ShardLocation, narrow: EventFilter, owners: Sequence[str]
) -> AsyncGenerator[EventRow, None]:
    whose = Owners(place, owners) if owners else None
    async with aclosing(read(place, narrow)) as rows:
        async for row in rows:
            if whose is None or await whose.takes(row):
                yield row


async def _merged(sources: Sequence[AsyncGenerator[EventRow, None]]) -> AsyncGenerator[EventRow, None]:
    """The events of several shards by time; those of one shard stay in their order."""
    async with AsyncExitStack() as stack:
        readers: list[AsyncIterator[EventRow]] = [
            await stack.enter_async_context(aclosing(source)) for source in sources
        ]
        heap: list[tuple[int, int, EventRow]] = []
        for index, reader in enumerate(readers):
            async for row in reader:
                heap.append((row.at, index, row))
                break
        heapq.heapify(heap)
        while heap:
            _, index, row = heap[0]
            yield row
            following = await anext(readers[index], None)
            if following is None:
                heapq.heappop(heap)
            else:
                heapq.heapreplace(heap, (max(following.at, row.at), index, following))


class Printer:
    """One line per event, or one JSON object; not more than `most` of them."""

    def __init__(
        self, screen: Screen, shown: Sequence[ShardLocation], *, long: bool, most: int | None
    ) -> None:
        self._screen = screen
        self._long = long
        self._left = most
        self._none = True
        self._width = max((len(place.shard) for place in shown), default=0)

    @property
    def empty(self) -> bool:
        """Whether nothing has been printed."""
        return self._none

    @property
    def full(self) -> bool:
        """Whether no more are wanted."""
        return self._left == 0

    async def show(self, rows: AsyncGenerator[EventRow, None]) -> None:
        """Print the events, and close their source."""
        async with aclosing(rows):
            async for row in rows:
                self._print(row)
                self._none = False
                self._left = None if self._left is None else self._left - 1
                if self.full:
                    return

    def _print(self, row: EventRow) -> None:
        said = told(row)
        if self._screen.as_json:
            self._screen.json_line(_object(row, said))
            return
        entry = row.entry
        where = f"{row.frame}:{row.position}"
        self._screen.say(
            f"{precise(row.at)}  {row.shard:<{self._width}}  {where:>11}  {entry.stream:<14} {entry.version:>3}  "
            f"{self._screen.paint(f'{entry.type:<19}', said.style)}  {said.sentence}"
        )
        if self._long:
            for name, value in _fields(row, said).items():
                self._screen.say(f"    {name} = {json.dumps(value, ensure_ascii=False, default=str)}")


def _object(row: EventRow, said: EventSentence) -> dict[str, object]:
    entry = row.entry
    found: dict[str, object] = {
        "at": rfc3339(row.at),
        "shard": row.shard,
        "frame": row.frame,
        "position": row.position,
        "epoch": row.epoch,
        "stream": entry.stream,
        "version": entry.version,
        "type": entry.type,
        "sentence": said.sentence,
    }
    if said.event is None:
        return {**found, "unreadable": entry.data.hex()}
    return {**found, "event": said.event, **_meta(entry.meta)}


def _fields(row: EventRow, said: EventSentence) -> dict[str, object]:
    if said.event is None:
        return {"bytes": row.entry.data.hex()}
    fields: dict[str, object] = msgspec.to_builtins(said.event)
    fields.pop("event", None)
    return {"epoch": row.epoch, **fields, **_meta(row.entry.meta)}


def _meta(meta: bytes) -> dict[str, object]:
    if not meta:
        return {}
    try:
        return {"meta": msgspec.msgpack.decode(meta)}
    except msgspec.MsgspecError:
        return {"meta": meta.hex()}
