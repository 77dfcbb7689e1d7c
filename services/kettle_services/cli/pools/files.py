"""`kettle pool example`, `check`, `diff`, `apply`: pool files."""

import argparse
import sys
from importlib.resources import files
from pathlib import Path

from kettle.client import Client
from kettle.client.errors import PoolNotFoundError
from kettle.worker_pools.comparison import changes
from kettle.worker_pools.faults import Fault, PoolFileRefused
from kettle.worker_pools.reading import OFFER, read_pool
from kettle_services.cli.errors import CommandError
from kettle_services.cli.options import with_pool
from kettle_services.cli.output.screen import Screen
from kettle_wire.worker_pools import PoolKind, WorkerPool


def example(arguments: argparse.Namespace, screen: Screen) -> int:
    """Print a file to begin with."""
    del arguments
    screen.write(files("kettle.worker_pools").joinpath("example.toml").read_text(encoding="utf-8"))
    return 0


def check(arguments: argparse.Namespace, screen: Screen) -> int:
    """What is wrong with a file, and what its providers say."""
    pool = _read(arguments, screen)
    if pool is None:
        return 1
    offline = arguments.offline or (pool.kind is PoolKind.STATIC and not pool.hibernates)
    try:
        found = [] if offline else with_pool(arguments, lambda client: client.worker_pools.check(pool))
    except PoolNotFoundError as error:
        raise CommandError(
            f"nothing is wrong in {arguments.file} itself, and its providers cannot be asked: {error}; look at the file alone with --offline"
        ) from error
    if screen.as_json:
        screen.json({"faults": [], "offers": found, "pool": pool})
    for each in found if not screen.as_json else ():
        offer = f"offer {each.offer}: "
        screen.trouble(f"{arguments.file}: {offer}{each.sentence.removeprefix(offer)}")
    if not found and not screen.as_json:
        could = "put its machines to sleep and wake them" if pool.hibernates else "make such machines"
        looked = "" if offline else f", and its providers could {could}"
        screen.say(screen.paint(f"{arguments.file}: nothing is wrong{looked}.", "good"))
    return 1 if found else 0


def diff(arguments: argparse.Namespace, screen: Screen) -> int:
    """What applying a file would change."""
    pool = _read(arguments, screen)
    if pool is None:
        return 1

    async def compared(client: Client) -> list[str]:
        before = await client.worker_pools.find(pool.name)
        return changes(
            before.pool if before is not None and not before.summary.standing.startswith("retir") else None,
            pool,
        )

    found = with_pool(arguments, compared)
    if screen.as_json:
        screen.json({"pool": pool.name, "changes": found})
    else:
        _say_changes(found, f"The pool {pool.name} is so already.", screen)
    return 1 if found else 0


def apply(arguments: argparse.Namespace, screen: Screen) -> int:
    """Have a pool be as a file says."""
    pool = _read(arguments, screen)
    if pool is None:
        return 1
    applied = with_pool(arguments, lambda client: client.worker_pools.apply(pool))
    if screen.as_json:
        screen.json({"pool": pool.name, "version": applied.version, "changes": applied.changes})
        return 0
    _say_changes(applied.changes, f"The pool {pool.name} is so already.", screen)
    if applied.changes:
        screen.note(f"See what it does with: kettle pool explain {pool.name}")
    return 0


def _say_changes(found: list[str], none: str, screen: Screen) -> None:
    if not found:
        screen.say(none)
    for each in found:
        style = "good" if each.endswith("is new") else "bad" if "is gone" in each else ""
        screen.say(screen.paint(each, style))


def _read(arguments: argparse.Namespace, screen: Screen) -> WorkerPool | None:
    """The pool of the file; None: its faults have been told."""
    try:
        return read_pool(_text_of(arguments.file), arguments.file)
    except PoolFileRefused as refused:
        _tell(refused.faults, screen)
        return None


def _tell(faults: tuple[Fault, ...], screen: Screen) -> None:
    if screen.as_json:
        screen.json({"faults": faults, OFFER: [], "pool": None})
    else:
        for fault in faults:
            screen.trouble(str(fault))


def _text_of(path: str) -> str:
    try:
        octets = sys.stdin.buffer.read() if path == "-" else Path(path).read_bytes()
        return octets.decode()
    except OSError as error:
        raise CommandError(
            f"cannot read {path}: {error.strerror}; kettle pool example prints a file to begin with"
        ) from error
    except UnicodeDecodeError as error:
        raise CommandError(f"{path} is no text in UTF-8: {error.reason}") from error
