"""`kettle session list`, `show` and `profiles`."""

import argparse
import time
from collections.abc import Iterator
from typing import Final

from kettle.client import Client
from kettle.client.events.sentences import sentence
from kettle.terminal.quantities import duration
from kettle_services.cli.options import with_pool
from kettle_services.cli.output.screen import Screen
from kettle_wire.commands.sessions import MemberView, SessionNews, SessionView
from kettle_wire.events import decode
from kettle_wire.sessions import SessionState

STYLES: Final[dict[SessionState, str]] = {
    "requested": "idle",
    "queued": "idle",
    "starting": "idle",
    "ready": "running",
    "degraded": "bad",
    "stopping": "dim",
    "ended": "dim",
}
_MEMBERS: Final = {"running": "running", "held": "bad", "idle": "idle"}
_LISTED: Final = 50
"""Members that are shown one by one."""


def sessions(arguments: argparse.Namespace, screen: Screen) -> int:
    """One's own."""
    found = with_pool(
        arguments,
        lambda pool: pool.sessions.list(everybody=arguments.everybody, ended=arguments.ended),
    )
    if screen.as_json:
        screen.json(found)
        return 0
    if not found:
        screen.note("You have no session; kettle session create --help says how to begin one.")
        return 0
    now = time.time()
    screen.table(
        ("SESSION", "OWNER", "KIND", "PROFILE", "STATE", "WORKERS", "AGE", "WHAT"),
        [
            (
                each.name,
                each.owner,
                each.kind,
                each.profile,
                each.state,
                f"{each.running}/{each.wanted}" if each.kind == "dask" or each.wanted else "-",
                duration(now - each.created),
                _what(each),
            )
            for each in found
        ],
        styles=[STYLES[each.state] for each in found],
        right=frozenset({"WORKERS", "AGE"}),
    )
    return 0


def _what(session: SessionView) -> str:
    if session.state == "ended":
        return f"{session.outcome}: {session.reason}"
    return session.reason or (session.waits[0].reason if session.waits else "")


def session(arguments: argparse.Namespace, screen: Screen) -> int:
    """One of them."""
    found, news = with_pool(arguments, lambda pool: _asked(pool, arguments.session, arguments.events))
    if screen.as_json:
        screen.json(found)
        return 0
    show(found, screen)
    if news is not None and news.events:
        screen.say()
        for each in news.events:
            said, style = sentence(decode(bytes(each.data)))
            clock = time.strftime("%H:%M:%S", time.localtime(each.at / 1e6))
            screen.say(f"  {clock}  {screen.paint(said, style) if style else said}")
    return 0


async def _asked(pool: Client, name: str, events: int) -> tuple[SessionView, SessionNews | None]:
    found = await pool.sessions.show(name)
    if events <= 0:
        return found, None
    return found, await pool.sessions.news(found.id, max(0, found.events - events), wait=0.0)


def show(found: SessionView, screen: Screen) -> None:
    """A session for a person at a terminal."""
    screen.say(
        screen.paint(f"Session {found.name}", "strong")
        + f" ({found.id}) of {found.owner} is {screen.paint(found.state, STYLES[found.state])}"
        + (f": {found.reason}" if found.reason else "")
    )
    for name, value in _facts(found, time.time()):
        screen.say(f"  {name:<10} {value}")
    for each in found.waits[1:]:
        screen.say(f"  {each.count:>10} wait: {each.reason}")
    if found.members:
        screen.say()
        _members(found.members, screen)


def _facts(found: SessionView, now: float) -> Iterator[tuple[str, str]]:
    yield "kind", f"{found.kind}, profile {found.profile}" + (f", image {found.image}" if found.image else "")
    gpus = f", {found.gpus} GPUs" if found.gpus else ""
    yield "size", f"{found.cpus} CPUs, {found.memory} MiB{gpus}, {found.disk} MiB of disk"
    if found.kind == "dask" or found.wanted:
        yield "workers", found.summary
    adapt = found.target.adapt
    if adapt is not None:
        yield "adapt", f"from {adapt.minimum} to {adapt.maximum}, as its load wants"
    if found.site:
        yield "site", found.site
    if found.scheduler.contact:
        yield "contact", found.scheduler.contact
    if found.target.shared_with:
        yield "shared", ", ".join(found.target.shared_with)
    if found.ends:
        yield "life", f"{duration(max(0.0, found.ends - now))} left"
    if found.target.idle:
        yield "idle", f"ends after {duration(found.target.idle)} without use"
    if found.lost or found.restarts:
        yield "history", f"{found.lost} workers lost, started again {found.restarts} times"


def _members(members: list[MemberView], screen: Screen) -> None:
    now = time.time()
    listed = members[:_LISTED]
    screen.table(
        ("MEMBER", "ROLE", "JOB", "STATUS", "FOR", "WHERE", "WHAT"),
        [
            (
                each.number,
                each.role,
                each.job or "-",
                f"{each.status}{', going' if each.retiring else ''}",
                duration(now - each.since),
                each.machine or "-",
                each.reason,
            )
            for each in listed
        ],
        styles=[_MEMBERS.get(each.status, "") for each in listed],
        right=frozenset({"MEMBER", "FOR"}),
    )
    if len(members) > len(listed):
        screen.note(f"... and {len(members) - len(listed)} more")


def profiles(arguments: argparse.Namespace, screen: Screen) -> int:
    """What there is to be had."""
    found = with_pool(arguments, lambda pool: pool.sessions.profiles())
    if screen.as_json:
        screen.json(found)
        return 0
    screen.table(
        ("PROFILE", "KIND", "CPUS", "MEMORY", "GPUS", "DISK", "WORKERS", "SITE", "IMAGE", "WHAT"),
        [
            (
                each.name,
                each.kind,
                _range(each.cpus, each.cpus_allowed),
                _range(each.memory, each.memory_allowed),
                _range(each.gpus, each.gpus_allowed),
                _range(each.disk, each.disk_allowed),
                f"{each.workers} of {each.most_workers}" if each.most_workers else "-",
                each.site or "any",
                each.image or "-",
                each.title,
            )
            for each in found.profiles
        ],
        right=frozenset({"CPUS", "MEMORY", "GPUS", "DISK", "WORKERS"}),
    )
    screen.note(f"They are from {found.source}." if found.source else _BUILT_IN)
    for problem in found.problems:
        screen.trouble(problem)
    return 1 if found.problems else 0


_BUILT_IN: Final = "They are built in: profiles of [sessions] in kettle.toml names a file with others."


def _range(usual: int, allowed: list[int]) -> str:
    return f"{usual} ({allowed[0]}-{allowed[1]})" if allowed else f"{usual}"
