"""`kettle session scale`, `adapt`, `share`, `restart` and `stop`."""

import argparse

from kettle.client import Client
from kettle_services.cli.errors import UsageError
from kettle_services.cli.options import with_pool
from kettle_services.cli.output.screen import Screen
from kettle_wire.commands.sessions import SessionView


def scale(arguments: argparse.Namespace, screen: Screen) -> int:
    """Another number of workers."""
    found = with_pool(arguments, lambda pool: pool.sessions.scale(arguments.session, arguments.workers))
    return _told(found, f"Session {found.name}: {found.summary}", screen)


def adapt(arguments: argparse.Namespace, screen: Screen) -> int:
    """As many as the load wants, or not any more."""
    if (arguments.range is None) is not arguments.off:
        raise UsageError("say either MIN:MAX or --off, as in: kettle session adapt fits 0:50")
    if arguments.off:
        found = with_pool(arguments, lambda pool: pool.sessions.fix(arguments.session))
        return _told(found, f"Session {found.name} keeps {found.wanted} workers.", screen)
    least, most = arguments.range
    found = with_pool(arguments, lambda pool: pool.sessions.adapt(arguments.session, least, most))
    return _told(
        found, f"Session {found.name} has from {least} to {most} workers, as its load wants.", screen
    )


def share(arguments: argparse.Namespace, screen: Screen) -> int:
    """With these and nobody else."""
    if bool(arguments.who) is arguments.nobody:
        raise UsageError("say either with whom, or --nobody")
    found = with_pool(arguments, lambda pool: pool.sessions.share(arguments.session, arguments.who))
    whom = ", ".join(found.target.shared_with) or "nobody"
    return _told(found, f"Session {found.name} is shared with {whom}.", screen)


def restart(arguments: argparse.Namespace, screen: Screen) -> int:
    """Its head and its workers again."""
    found = with_pool(arguments, lambda pool: pool.sessions.restart(arguments.session))
    return _told(found, f"Session {found.name} starts again: kettle session show {found.name}", screen)


def stop(arguments: argparse.Namespace, screen: Screen) -> int:
    """The end of some."""

    async def all_of_them(pool: Client) -> list[SessionView]:
        return [await pool.sessions.stop(each, arguments.reason) for each in arguments.sessions]

    found = with_pool(arguments, all_of_them)
    if screen.as_json:
        screen.json(found)
        return 0
    for each in found:
        screen.say(f"Session {each.name} is {each.state}.")
    return 0


def _told(session: SessionView, sentence: str, screen: Screen) -> int:
    if screen.as_json:
        screen.json(session)
    else:
        screen.say(sentence)
    return 0
