"""`kettle web`."""

import argparse
import asyncio
import os
from pathlib import Path
from typing import Final

from kettle.client import Client, ClientError, home_directory
from kettle.retry.deadline import Deadline
from kettle_services.cli.browser import led_to
from kettle_services.cli.errors import CommandError
from kettle_services.cli.options import json_option, reach_options
from kettle_services.cli.output.screen import Screen

HELP: Final = """\
Open the pages of the pool in a browser that is signed in as you, by an address that works once and for a minute.

In a pool of your own this starts what is missing: the pool, and the pages, for which it writes rest = true into [gateway] of
kettle.toml.  They are served on this machine only.

examples:
  kettle web
  kettle web --no-open              print the address only, as for a browser at the other end of ssh -L
"""
_LOOK_S: Final = 0.2


def arguments(parser: argparse.ArgumentParser) -> None:
    """What the command takes."""
    parser.add_argument("--no-open", action="store_true", help="start no browser")
    json_option(parser)
    reach_options(parser)


def run(arguments: argparse.Namespace, screen: Screen) -> int:
    """Print the address, and have a browser open it where there is one."""
    _start(arguments, screen)
    link = asyncio.run(_link(arguments, screen))
    opened = not (arguments.no_open or screen.as_json) and led_to(link)
    if screen.as_json:
        screen.json({"url": link})
    elif opened:
        screen.say("Your browser opens the pages of the pool; press the button there.")
        screen.note(f"If it does not, open this address within a minute: {link}")
    else:
        screen.say(link)
        screen.note("It works once, within a minute.")
    return 0


def _start(arguments: argparse.Namespace, screen: Screen) -> None:
    """Have the pool of this account run, if this account has one and no other is meant."""
    home: Path = arguments.home or home_directory()
    elsewhere = arguments.home is None and (
        "KETTLE_NATS_URL" in os.environ or "KETTLE_POOL_URL" in os.environ
    )
    if elsewhere or not (home / "kettle.toml").exists():
        return
    from kettle.pool import PoolError, state, up

    try:
        if state(home) is None:
            screen.note(f"Starting the pool in {home} ...")
            up(home)
    except PoolError as error:
        raise CommandError(str(error)) from error


async def _link(arguments: argparse.Namespace, screen: Screen) -> str:
    async with Client.connect(home=arguments.home, patience=arguments.patience) as pool:
        pool.waiting = screen.note
        url = (await pool.gateway.address()).url
        if not url:
            url = await _switch_on(pool, screen)
        return await pool.gateway.login_link(url)


async def _switch_on(pool: Client, screen: Screen) -> str:
    """Have the gateway of this account's own pool serve pages; where it does then."""
    settings = Path(pool.pool.lock).parent / "kettle.toml" if pool.pool.lock else None
    if settings is None or not os.access(settings, os.W_OK):
        raise CommandError(
            "the pool's gateway serves no pages: who runs the pool switches them on by rest = true of [gateway] in kettle.toml"
        )
    from kettle.pool.settings_file import SettingsFileError, add

    try:
        add(settings, {"gateway": {"rest": True}})
    except SettingsFileError as error:
        raise CommandError(str(error)) from error
    screen.note(f"The gateway serves pages from now on: rest = true of [gateway] in {settings}")
    await pool.hosts.control("reconfig", daemons=["gateway"])
    deadline = Deadline(pool.requests.transport.patience)
    while not deadline.passed:
        try:
            if url := (await pool.gateway.address()).url:
                return url
        except ClientError as error:
            screen.note(str(error))
        await asyncio.sleep(_LOOK_S)
    raise CommandError("the gateway does not serve pages yet; look with: kettle logs gateway")
