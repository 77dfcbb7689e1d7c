"""`kettle session create`."""

import argparse

import msgspec

from kettle.client import Client
from kettle.client.sessions import SessionEndedError
from kettle_services.cli.errors import UsageError
from kettle_services.cli.options import with_pool
from kettle_services.cli.output.screen import Screen
from kettle_services.cli.sessions.showing import show
from kettle_wire.commands.sessions import NewSession, SessionView
from kettle_wire.sessions import SessionAdapt, SessionSize

_ENOUGH = ("ready", "degraded")
"""States in which somebody can work."""


def create(arguments: argparse.Namespace, screen: Screen) -> int:
    """Begin it, and wait for it if that is wanted."""
    new = new_session(arguments)
    try:
        made = with_pool(arguments, lambda pool: _made(pool, new, arguments, screen))
    except SessionEndedError as error:
        screen.trouble(str(error))
        return 1
    if screen.as_json:
        screen.json(made)
    elif arguments.wait:
        show(made, screen)
    else:
        screen.say(f"Session {made.name} ({made.id}) is on its way: kettle session show {made.name}")
    return 0


def new_session(arguments: argparse.Namespace) -> NewSession:
    """What was typed; raises UsageError."""
    if arguments.kind == "dask" and arguments.program:
        raise UsageError("a session of the kind dask has the programs of its profile: no --command")
    adapt = arguments.adapt
    said = {
        "kind": arguments.kind,
        "profile": arguments.profile,
        "name": arguments.session_name,
        "image": arguments.image,
        "size": SessionSize(
            workers=arguments.workers,
            cpus=arguments.cpus,
            memory=arguments.memory,
            gpus=arguments.gpus,
            disk=arguments.disk,
        ),
        "adapt": None if adapt is None else SessionAdapt(minimum=adapt[0], maximum=adapt[1]),
        "site": arguments.site,
        "spread": True if arguments.spread else None,
        "life": arguments.life,
        "idle": arguments.idle,
        "share": arguments.share,
        "command": arguments.program,
        "services": arguments.services,
    }
    try:
        return msgspec.convert(msgspec.to_builtins(said), NewSession)
    except msgspec.ValidationError as error:
        raise UsageError(f"that is no session: {error}") from error


async def _made(pool: Client, new: NewSession, arguments: argparse.Namespace, screen: Screen) -> SessionView:
    made = await pool.sessions.create(new)
    if not arguments.wait:
        return made
    said = ""
    while made.state not in _ENOUGH:
        if made.state == "ended":
            raise SessionEndedError(made)
        line = f"{made.state}: {made.reason}" if made.reason else made.state
        if line != said and not screen.as_json:
            screen.note(line)
        said = line
        made = (await pool.sessions.news(made.id, made.events, wait=2.0)).session
    return made
