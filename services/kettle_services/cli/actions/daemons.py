"""
What `on`, `off`, `restart` and `reconfig` have in common: they send a command to a host's master, and wait for the
result.
"""

import argparse
import asyncio
import logging
import math
from collections.abc import Collection
from typing import Final

from kettle.client import Client, ClientError
from kettle.retry.deadline import Deadline
from kettle.runtime.settings import ROLES
from kettle_services.cli.errors import CommandError, UsageError
from kettle_services.cli.options import json_option, reach_options, seconds
from kettle_services.cli.output.screen import Screen
from kettle_wire.commands.master import (
    ControlAction,
    Controlled,
    DaemonReport,
    Daemons,
    How,
    Switched,
)

_LOOK_S: Final = 0.2
_LOOK_PATIENCE_S: Final = 2.0
_REFUSED: Final = "refused: "
_MASTER: Final = "master"
_DONE: Final = {
    "on": "on",
    "off": "off",
    "restart": "running again",
    "reconfig": "running with its new settings",
}


def control_arguments(parser: argparse.ArgumentParser, *, verb: str, ends: bool) -> None:
    """What the four take; `ends`: whether daemons end by it, in one of three ways."""
    parser.add_argument(
        "words",
        nargs="*",
        metavar="DAEMON|HOST",
        help="daemons such as schedd or schedd.NAME (default: all), and the name of a host's master (default: this host)",
    )
    parser.add_argument(
        "--daemon",
        action="append",
        default=[],
        metavar="NAME",
        help=f"{verb} this one alone: a role as schedd, or schedd.NAME; may be repeated (default: the whole host)",
    )
    if ends:
        how = parser.add_mutually_exclusive_group()
        how.add_argument(
            "--peaceful",
            action="store_true",
            help="let running jobs end by themselves first, without a time limit",
        )
        how.add_argument(
            "--fast", action="store_true", help="at once: jobs get no time to end, and run again elsewhere"
        )
    parser.add_argument("--no-wait", action="store_true", help="do not wait until it is done")
    parser.add_argument(
        "--timeout",
        type=seconds,
        metavar="SECONDS",
        help="how long to wait until it is done (default: 120; with --peaceful no limit)",
    )
    json_option(parser)
    reach_options(parser)


def control(arguments: argparse.Namespace, screen: Screen, action: ControlAction) -> int:
    """
    Send the command, and print the result for each daemon; returns 1 if one refused, or did not finish in time.
    """
    peaceful, fast = getattr(arguments, "peaceful", False), getattr(arguments, "fast", False)
    how: How = "peaceful" if peaceful else "fast" if fast else "graceful"
    read_words(arguments)
    return asyncio.run(_control(arguments, screen, action, how))


def read_words(arguments: argparse.Namespace) -> None:
    """
    Which of the words are daemons: those whose role is one. Beside --daemon the one word is a host, whatever it is called.
    """
    words: list[str] = arguments.words
    named = [word for word in words if word.partition(".")[0].partition("#")[0].lower() in ROLES]
    daemons = [] if arguments.daemon else named
    hosts = [word for word in words if word not in daemons]
    if len(hosts) > 1:
        strangers = " and ".join(hosts)
        known = ", ".join(sorted(ROLES - {"cli", "starter"}))
        raise UsageError(f"{strangers} cannot all be hosts: name one, and daemons of these: {known}")
    arguments.daemon = arguments.daemon or daemons
    arguments.host = hosts[0] if hosts else ""


async def _control(arguments: argparse.Namespace, screen: Screen, action: ControlAction, how: How) -> int:
    async with Client.connect(home=arguments.home, patience=arguments.patience) as pool:
        pool.waiting = screen.note
        before = await pool.hosts.daemons(host=arguments.host)
        answer = await pool.hosts.control(action, host=arguments.host, daemons=arguments.daemon, how=how)
    for why in answer.warnings:
        screen.note(f"warning: {why}")
    for one in answer.switched:
        _tell(one, screen)
    begun = {one.daemon for one in answer.switched if one.outcome == "begun"}
    late: list[str] = []
    if begun and not arguments.no_wait:
        late = await _until_so(arguments, screen, action, before, begun, peaceful=how == "peaceful")
    if screen.as_json:
        screen.json(_plain(answer, late))
    if late:
        raise CommandError(
            f"not {_DONE[action]} yet: {', '.join(late)}; it goes on, look with: kettle status --master"
        )
    return 1 if any(one.outcome == "refused" for one in answer.switched) else 0


async def _until_so(
    arguments: argparse.Namespace,
    screen: Screen,
    action: ControlAction,
    before: Daemons,
    begun: Collection[str],
    *,
    peaceful: bool,
) -> list[str]:
    """Look until all that was begun is so; what is not in time."""
    # The bus may be away for a while, and says so each time: that is what a restart is.
    logging.getLogger("kettle.bus").setLevel(logging.CRITICAL)
    patience = arguments.timeout if arguments.timeout is not None else 120.0
    if arguments.timeout is None and peaceful:
        patience = math.inf
    deadline, told = Deadline(patience), set[str]()
    while True:
        now = await _look(arguments)
        left = _left(action, before, now, begun) if now is not None else sorted(begun)
        for name in sorted(set(begun) - set(left) - told):
            told.add(name)
            if not screen.as_json:
                screen.say(f"{_shown(name)} is {_DONE[action]}.")
        if not left or deadline.passed:
            return left
        await asyncio.sleep(_LOOK_S)


async def _look(arguments: argparse.Namespace) -> Daemons | None:
    """How the daemons are; None while the master does not answer, as when it takes its own place."""
    try:
        async with Client.connect(home=arguments.home, patience=_LOOK_PATIENCE_S) as pool:
            return await pool.hosts.daemons(host=arguments.host)
    except ClientError:
        return None


def _left(action: ControlAction, before: Daemons, now: Daemons, begun: Collection[str]) -> list[str]:
    were = {daemon.name: daemon for daemon in before.daemons}
    are = {daemon.name: daemon for daemon in now.daemons}
    left: list[str] = []
    for name in sorted(begun):
        if name == _MASTER:
            done = now.started != before.started and now.ready and all(map(_serves, now.daemons))
        elif name not in are:
            done = True  # the daemon list has changed meanwhile
        else:
            done = _so(action, were.get(name), are[name])
        if not done:
            left.append(name)
    return left


def _so(action: ControlAction, was: DaemonReport | None, now: DaemonReport) -> bool:
    if action == "off":
        return now.status == "off"
    if now.status == "left":
        raise CommandError(
            f"the {now.name} does not run: it ended with {now.last_exit}; see its log, "
            f"then: kettle on --daemon {now.name}"
        )
    anew = action == "on" or was is None or now.starts > was.starts
    if not anew or now.status not in {"running", "standby"}:
        return False
    if action == "reconfig" and now.settings.startswith(_REFUSED):
        raise CommandError(
            f"the {now.name} goes on with the settings that it had: {now.settings.removeprefix(_REFUSED)}"
        )
    return True


def _serves(daemon: DaemonReport) -> bool:
    return daemon.status in {"running", "standby", "off", "left"}


def _tell(one: Switched, screen: Screen) -> None:
    name = _shown(one.daemon)
    if one.outcome == "refused":
        # a mistake in the configuration is not about the master, which has found it
        screen.trouble(one.why if one.daemon == _MASTER else f"{name}: {one.why}")
    elif screen.as_json:
        return
    elif one.outcome == "done":
        screen.say(f"{name}: done{f'; {one.why}' if one.why else ''}.")
    elif one.outcome == "nothing":
        screen.say(f"{name}: nothing to do{f', {one.why}' if one.why else ''}.")


def _shown(name: str) -> str:
    return f"The {name}"


def _plain(answer: Controlled, late: Collection[str]) -> list[dict[str, object]]:
    return [
        {"daemon": one.daemon, "outcome": one.outcome, "why": one.why, "in_time": one.daemon not in late}
        for one in answer.switched
    ]
