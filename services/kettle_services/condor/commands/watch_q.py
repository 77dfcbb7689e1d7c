"""condor_watch_q: jobs as they come on, by their job event logs or by what is recorded of them."""

import math
import os
import re
import shutil
import sys
import time
from collections.abc import Iterable
from contextlib import aclosing
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final

import msgspec

from kettle_services.condor.arguments.grammar import ALL, Option, TypedOption, understood
from kettle_services.condor.errors import ToolError, WordsError, do_you_mean
from kettle_services.condor.watch.board import HOW_MANY, WHERE, Board, Cluster, Ending, Job, Place
from kettle_services.condor.watch.picture import Wishes, picture

if TYPE_CHECKING:
    import asyncio

    from kettle.client.client import Client
    from kettle.client.events.progress import Progress
    from kettle.userlog.reader import LogReader
    from kettle_wire.commands.queue import Select

_TOGGLES: Final = ("table", "progress", "row-progress", "summary", "updated-at", "color", "refresh")
_TITLES: Final = {"batch": "BATCH", "cluster": "CLUSTER", "log": "LOG"}
OPTIONS: Final = {
    "batches": Option(takes=ALL),
    "clusters": Option(takes=ALL),
    "collector": Option(takes=1, also=("pool",)),
    "debug": Option(),
    "exit": Option(takes=1),
    "files": Option(takes=ALL),
    "groupby": Option(takes=1),
    "interval": Option(takes=1),
    "schedd": Option(takes=1, also=("name",)),
    "summary-type": Option(takes=1),
    "users": Option(takes=ALL),
    **{f"{no}{name}": Option() for name in _TOGGLES for no in ("", "no-")},
}
HELP: Final = {
    "condor_watch_q": """\
usage: condor_watch_q [options]

Watch jobs: a table of batches with bars, drawn again whenever something changes.  Jobs of the queue are followed by what is
recorded of them, with or without a log; those of -files by the files alone, without a pool.  Without -users, -clusters,
-batches or -files they are all of yours.

  -users USER ...        those of these people
  -clusters N ...        those of these clusters
  -batches NAME ...      those of these batches
  -files FILE ...        those that these job event logs tell of, also such as are still to come
  -schedd SCHEDD, -collector P   whose queue, and of which pool

  -exit {all|any|none},{active|done|idle|held}[,STATUS]
                         end with this status (0) when that is so of the jobs; may be repeated
  -groupby {batch|cluster|log}   what has a line of its own (batch)
  -interval SECONDS      how often it is drawn at most (0.5)
  -no-table, -no-progress, -no-row-progress, -no-summary, -no-updated-at   leave this out
  -summary-type {totals|percentages}
  -no-color, -no-refresh plain text, and one picture below the other: as it is anyway where the output is no terminal
  -debug                 changes nothing here

It ends by ^C with status 0, and if there are no such jobs.

  condor_watch_q -clusters 12 -exit all,done,0 -exit any,held,1
""",
}
_SHOWN: Final = ["ClusterId", "JobBatchName", "UserLog", "Iwd"]
_LOOK_S: Final = 0.5
_LARGEST: Final = 255
_BEGIN: Final = "\033[?1049h"
_AGAIN: Final = "\033[H\033[J"
_END: Final = "\033[?1049l"
_PLACES: Final[dict[str, Place]] = {
    "idle": "IDLE", "running": "RUN", "removed": "REMOVED", "completed": "DONE", "held": "HELD", "suspended": "SUSPENDED",
}  # fmt: skip


class _Wanted(msgspec.Struct):
    """What was typed."""

    users: list[str] = []
    clusters: list[int] = []
    batches: list[str] = []
    files: list[str] = []
    endings: list[Ending] = []
    wishes: Wishes = msgspec.field(default_factory=Wishes)
    by: str = "batch"
    interval: float = _LOOK_S
    refresh: bool = False
    schedd: str = ""
    pool: str = ""

    @property
    def queue(self) -> bool:
        """Whether jobs of a queue are meant."""
        return bool(self.users or self.clusters or self.batches) or not self.files


def run(_name: str, words: list[str]) -> int:
    """Watch."""
    terminal = sys.stdout.isatty()
    wanted = _Wanted(wishes=Wishes(color=terminal and "NO_COLOR" not in os.environ), refresh=terminal)
    for given in understood(words, OPTIONS):
        _take(wanted, given)
    screen = _Screen(Board(), wanted)
    logs = _Logs(screen.board, wanted.files)
    try:
        if not wanted.queue:
            return _watch_files(screen, logs)
        from kettle.client.connections.condor_config import CondorConfig
        from kettle_services.condor.connections.pool_client import client_of

        client = client_of(CondorConfig(os.environ), pool=wanted.pool, name=wanted.schedd)
        return client.run(lambda pool: _watch_queue(pool, screen, logs))
    except KeyboardInterrupt:
        return 0
    finally:
        screen.leave()
        screen.say_why()


def _take(wanted: _Wanted, given: TypedOption) -> None:
    value = given.values[0] if given.values else ""
    match given.name:
        case "users" | "batches" | "files" as name:
            getattr(wanted, name).extend(given.values)
        case "clusters":
            wanted.clusters += map(_cluster, given.values)
        case "exit":
            wanted.endings.append(ending_of(value))
        case "schedd":
            wanted.schedd = value
        case "collector":
            wanted.pool = value
        case "":
            raise WordsError(
                f"'{value}' stands alone: write -clusters {value}, -users {value} or -files {value}"
            )
        case _:
            _take_wish(wanted, given)


def _take_wish(wanted: _Wanted, given: TypedOption) -> None:
    """How it is to look."""
    match given.name:
        case "groupby":
            wanted.by = _one_of(given, _TITLES)
        case "summary-type":
            wanted.wishes.percentages = _one_of(given, ("totals", "percentages")) == "percentages"
        case "interval":
            wanted.interval = _seconds(given.values[0])
        case "refresh" | "no-refresh" as name:
            wanted.refresh = name == "refresh" and sys.stdout.isatty()
        case "debug":
            pass
        case toggle:
            setattr(wanted.wishes, toggle.removeprefix("no-").replace("-", "_"), not toggle.startswith("no-"))


def _cluster(word: str) -> int:
    if not re.fullmatch(r"\d{1,9}", word, re.ASCII):
        raise WordsError(f"-clusters takes numbers, not '{word}'")
    return int(word)


def _one_of(given: TypedOption, known: Iterable[str]) -> str:
    value = given.values[0].lower()
    if value not in known:
        raise WordsError(
            f"-{given.name} takes {', '.join(known)}, not '{given.values[0]}'{do_you_mean(value, known)}"
        )
    return value


def _seconds(word: str) -> float:
    try:
        seconds = float(word)
    except ValueError:
        seconds = math.nan
    if not 0 < seconds < math.inf:
        raise WordsError(f"-interval takes seconds, not '{word}'")
    return seconds


def ending_of(said: str) -> Ending:
    """`all,done[,0]`; raises WordsError."""
    parts = [part.strip().lower() for part in said.split(",")]
    if len(parts) not in {2, 3}:
        raise WordsError(f"-exit takes GROUPER,JOB_STATUS[,EXIT_STATUS], as in all,done,0, not '{said}'")
    for part, known, what in ((parts[0], HOW_MANY, "GROUPER"), (parts[1], WHERE, "JOB_STATUS")):
        if part not in known:
            raise WordsError(
                f"-exit: the {what} is one of {', '.join(known)}, not '{part}'{do_you_mean(part, known)}"
            )
    status = parts[2] if parts[2:] else "0"
    if not (status.isascii() and status.isdigit() and int(status) <= _LARGEST):
        raise WordsError(f"-exit: the EXIT_STATUS is a number up to {_LARGEST}, not '{status}'")
    return Ending(parts[0], parts[1], int(status))


# -- what is drawn -------------------------------------------------------------------------------------------------------


class _Screen:
    """The terminal, or the output that pictures are written to one below the other."""

    def __init__(self, board: Board, wanted: _Wanted) -> None:
        self.board: Final = board
        self.wanted: Final = wanted
        self._entered = False
        self._drawn: list[str] = []
        self._why = ""

    def draw(self) -> int | None:
        """Draw where the jobs are, unless that is drawn already; the exit status if a condition is met."""
        jobs = self.board.jobs()
        size = shutil.get_terminal_size()
        now = time.strftime("%Y-%m-%d %H:%M:%S")
        lines = picture(
            _TITLES[self.wanted.by],
            self.board.rows(self.wanted.by, jobs),
            self.wanted.wishes,
            width=size.columns,
            moment=now,
        )
        told = [line for line in lines if not line.startswith("Updated at ")]
        if told != self._drawn:
            self._drawn = told
            self._write(lines, size.lines)
        for ending in self.wanted.endings:
            if ending.met(jobs.values()):
                self._why = f'Exiting with code {ending.status} because of condition "{ending.how_many} {ending.where}" at {now}\n'
                return ending.status
        return None

    def _write(self, lines: list[str], height: int) -> None:
        if not self.wanted.refresh:
            sys.stdout.write("\n".join([*lines, "...", ""]))
        else:
            if len(lines) >= height:
                lines = [*lines[: height - 2], "Insufficient terminal height to display full output!"]
            sys.stdout.write(("" if self._entered else _BEGIN) + _AGAIN + "\n".join(lines))
            self._entered = True
        sys.stdout.flush()

    def leave(self) -> None:
        """The terminal is as it was before."""
        if self._entered:
            sys.stdout.write(_END + "\n".join([*self._drawn, ""]))
            self._entered = False

    def say_why(self) -> None:
        """Why the command ends by itself, below the last picture."""
        sys.stdout.write(self._why)


# -- where jobs are known from -------------------------------------------------------------------------------------------


class _Logs:
    """Job event logs; one that is not there yet may come."""

    def __init__(self, board: Board, files: list[str]) -> None:
        self._board = board
        self._files = [Path(file).absolute() for file in files]
        self._readers: dict[Path, LogReader] = {}

    def read(self) -> None:
        """Take in what is new in them; raises ToolError for what is no job event log."""
        if not self._files:
            return
        from kettle.userlog.framing import UserLogFormatError
        from kettle.userlog.reader import LogReader, heading

        for path in self._files:
            reader = self._readers.setdefault(path, LogReader(path))
            try:
                for block in reader.all():
                    event = heading(block)
                    text = block.text if event.number == 40 else ""
                    self._board.read(event.number, event.cluster, event.proc, str(path), text)
            except FileNotFoundError:
                continue
            except UserLogFormatError as error:
                raise ToolError(f"condor_watch_q: {path} cannot be read: {error}") from error


def _watch_files(screen: _Screen, logs: _Logs) -> int:
    while True:
        logs.read()
        status = screen.draw()
        if status is not None:
            return status
        # Logs may be on file systems without notifications of changes.
        time.sleep(screen.wanted.interval)


async def _watch_queue(pool: "Client", screen: _Screen, logs: _Logs) -> int:
    wanted = screen.wanted
    select = _select(wanted, pool)
    if not await _named(pool, screen.board, select) and not wanted.clusters and not wanted.files:
        sys.stderr.write("WARNING: No jobs found, exiting...\n")
        return 0
    await pool.connection()
    import asyncio

    changed = asyncio.Event()

    async def follow() -> None:
        told = False
        try:
            async with aclosing(pool.watch(select)) as watched:
                async for progress in watched:  # one object, which changes
                    if not told:
                        screen.board.add_source(partial(_places, progress))
                        told = True
                    changed.set()
        finally:
            changed.set()

    following = asyncio.create_task(follow(), name="jobs")
    try:
        while True:
            logs.read()
            status = screen.draw() if screen.board.jobs() or changed.is_set() else None
            if status is not None:
                return status
            changed.clear()
            if following.done():
                following.result()
            await _pause(changed, wanted.interval, files=bool(wanted.files))
    finally:
        following.cancel()
        await asyncio.gather(following, return_exceptions=True)


async def _pause(changed: "asyncio.Event", interval: float, *, files: bool) -> None:
    """Until something changes, but not sooner than the picture may be drawn again."""
    import asyncio

    await asyncio.sleep(interval)
    if not files:
        await changed.wait()


def _select(wanted: _Wanted, pool: "Client") -> "Select":
    from kettle.classad.printing import quoted_string
    from kettle.client.connections.condor_config import user_identity
    from kettle_wire.commands.queue import Select

    if wanted.clusters and not (wanted.users or wanted.batches):
        return Select(clusters=wanted.clusters)
    users = wanted.users or ([] if wanted.clusters or wanted.batches else [user_identity(pool.pool)])
    ways = [f"Owner == {quoted_string(user)}" for user in users]
    ways += [f"ClusterId == {cluster}" for cluster in wanted.clusters]
    ways += [f"JobBatchName == {quoted_string(name)}" for name in wanted.batches]
    return Select(constraint=" || ".join(ways))


async def _named(pool: "Client", board: Board, select: "Select") -> bool:
    """Learn the names of batches and logs of jobs in the queue; whether there are any."""
    from kettle_wire.commands.queue import Select

    ads = await pool.jobs(select, projection=_SHOWN)
    for gone in sorted(set(select.clusters) - {ad.get("ClusterId") for ad in ads}):
        ads += await pool.history(Select(clusters=[gone]), limit=1)
    for ad in ads:
        cluster, log = int(str(ad.get("ClusterId", 0))), str(ad.get("UserLog", ""))
        path = str(Path(str(ad.get("Iwd", "/")), log)) if log else ""
        board.clusters.setdefault(cluster, Cluster(batch=str(ad.get("JobBatchName", "")), log=path))
    return bool(ads)


def _places(progress: "Progress") -> Iterable[tuple[Job, Place]]:
    for job, state in progress.jobs.items():
        yield (job.cluster, job.proc), _PLACES[state.status]
