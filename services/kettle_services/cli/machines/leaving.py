"""
`kettle worker leave` and `kettle schedd leave`: from anywhere by an administrator, or who has let the machine in, or on the machine itself.
"""

import argparse
import asyncio
import os
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Final

from kettle.client import Client, home_directory
from kettle_services.cli.errors import CommandError, UsageError
from kettle_services.cli.machines.tokens import administers
from kettle_services.cli.options import json_option, reach_options, with_pool
from kettle_services.cli.output.screen import Screen
from kettle_wire.ads import Ad
from kettle_wire.events.iam import Joins

_LOOK_S: Final = 0.5
"""Between two looks at what has to come to its end."""
_SILENT_S: Final = 60.0
"""Who has something left may not be heard of for so long before nobody waits for it any more."""


def arguments(parser: argparse.ArgumentParser) -> None:
    """What leaving takes."""
    parser.add_argument(
        "worker",
        nargs="?",
        default="",
        metavar="NAME",
        help="as kettle worker list shows it (default: this machine)",
    )
    parser.add_argument(
        "--now", action="store_true", help="do not wait for its jobs: they run elsewhere again"
    )
    json_option(parser)
    reach_options(parser)


def run(arguments: argparse.Namespace, screen: Screen, joins: Joins) -> int:
    """Leave."""
    if arguments.worker:
        return _of_another(arguments, screen, joins)
    return _of_this(arguments, screen, joins)


def _of_another(arguments: argparse.Namespace, screen: Screen, joins: Joins) -> int:
    async def work(pool: Client) -> None:
        if not arguments.now:
            await pool.connection()
            await (_emptied if joins == "worker" else _queue_ended)(pool, arguments.worker, screen)
        if await administers(pool, "iam.remove_worker"):
            await pool.iam.remove_worker(arguments.worker)
        else:
            await pool.iam.own_machines.remove_worker(arguments.worker)

    with_pool(arguments, work)
    return _done(screen, f"The credential of {arguments.worker} is not valid any more.", [])


def _of_this(arguments: argparse.Namespace, screen: Screen, joins: Joins) -> int:
    from kettle.pool import PoolError, down, units
    from kettle.pool.joined_files import record_of, remove
    from kettle.pool.joining import JoinError
    from kettle.pool.leaving import say_good_bye

    home: Path = arguments.home or home_directory()
    try:
        record = record_of(home)
        if record is None or record.joins != joins:
            kind = "machine" if joins == "worker" else "access point"
            raise UsageError(f"{home} is of no {kind} that has joined a pool: say which one is to leave")
        if joins == "schedd" and not arguments.now:
            with_pool(arguments, lambda pool: _own_queue_ended(pool, record.worker, screen))
        screen.note(f"{record.worker} stops{'' if arguments.now else ' when its jobs have ended'}")
        down(home, peaceful=not arguments.now, deadline_s=60.0 if arguments.now else None)
        asyncio.run(say_good_bye(home, record))
        gone = remove(home, record)
        if os.geteuid() == 0 and units.systemd_runs():
            unit = units.uninstall("access-point" if joins == "schedd" else "worker")
            gone += [unit] if unit is not None else []
    except (JoinError, PoolError, units.UnitError) as error:
        raise CommandError(str(error)) from error
    sentence = f"{record.worker} has left the pool {record.pool}."
    return _done(screen, sentence, gone)


async def _emptied(pool: Client, machine: str, screen: Screen) -> None:
    """
    Drain a machine, if it is there, and wait until no claim is left and what its jobs made has arrived at their access points.
    """
    if not await _slots(pool, machine):
        return
    await pool.hosts.drain(machine, reason="it leaves the pool")

    async def left() -> str | None:
        slots = await _slots(pool, machine)
        if not slots:
            return None
        # Their ads come one by one, some later than others.
        drain = all(ad.get("Draining") for ad in slots)
        return _left(slots) or ("" if drain else "its slots to drain")

    await _wait(left, machine, screen)


async def _wait(look: Callable[[], Awaitable[str | None]], name: str, screen: Screen) -> None:
    """
    Wait until nothing is left of what `look` finds; None: it finds nobody who could have anything.

    Who had something left and is not heard of is not gone for that: its host may be slow, or its network away.

    Raises:
        CommandError: it was not heard of for a minute.
    """
    known = ""
    silent_since: float | None = None
    while (left := await look()) != "" and (left or known):
        if left is not None:
            if left != known or silent_since is not None:
                screen.note(f"waiting for {left} of {name}; --now does not wait")
            known, silent_since = left, None
        elif silent_since is None:
            screen.note(f"{name} is not heard of: waiting for it, for it had {known}")
            silent_since = time.monotonic()
        elif time.monotonic() - silent_since > _SILENT_S:
            raise CommandError(
                f"{name} has not been heard of for {_SILENT_S:.0f} seconds and had {known}: nothing was removed. "
                "Say this again when it is back, or with --now, which waits for nothing."
            )
        await asyncio.sleep(_LOOK_S)


async def _slots(pool: Client, machine: str) -> list[Ad]:
    """The slots of a machine; none: it is not there."""
    wanted = ["Name", "State", "NumDynamicSlots", "Draining", "UnconfirmedReports"]
    slots = await pool.ads("Machine", projection=wanted)
    return [ad for ad in slots if str(ad.get("Name", "")).partition("@")[2] == machine]


def _left(slots: list[Ad]) -> str:
    """What a machine that is being emptied still has; empty: nothing."""
    claimed = sum(ad.get("State") in {"Claimed", "Preempting"} for ad in slots)
    claimed = max([claimed, *_numbers(slots, "NumDynamicSlots")])
    reports = max(_numbers(slots, "UnconfirmedReports"), default=0)
    return f"{claimed} claim(s)" if claimed else f"the results of {reports} job(s)" if reports else ""


def _numbers(slots: list[Ad], name: str) -> list[int]:
    return [value for ad in slots if isinstance(value := ad.get(name), int)]


async def _own_queue_ended(pool: Client, name: str, screen: Screen) -> None:
    await pool.connection()
    await _queue_ended(pool, name, screen)


async def _queue_ended(pool: Client, name: str, screen: Screen) -> None:
    """
    Wait until no job waits or runs in the queue of an access point; one that is away has nothing to wait for.
    """

    async def left() -> str | None:
        ads = await pool.ads("Scheduler", projection=["Name", "TotalIdleJobs", "TotalRunningJobs"])
        own = [ad for ad in ads if ad.get("Name") == name]
        jobs = sum(_numbers(own, "TotalIdleJobs") + _numbers(own, "TotalRunningJobs"))
        return None if not own else f"{jobs} job(s)" if jobs else ""

    await _wait(left, name, screen)


def _done(screen: Screen, sentence: str, gone: list[Path]) -> int:
    if screen.as_json:
        screen.json({"done": sentence, "removed": [str(path) for path in gone]})
    else:
        screen.say(sentence)
    return 0
