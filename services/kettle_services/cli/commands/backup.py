"""`kettle backup`: a pool as files, the proof that these are good, and the pool from these files."""

import argparse
import asyncio
from collections.abc import Coroutine
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeVar

from kettle.client import home_directory
from kettle_services.cli.errors import CommandError
from kettle_services.cli.options import home_option, json_option
from kettle_services.cli.output.screen import Screen

if TYPE_CHECKING:
    from kettle.backup import Manifest

T = TypeVar("T")

HELP: Final = """\
Back a pool up, prove a backup, and bring a pool back from one.

A backup is a directory: the database at one frame of each shard, the files of the queue, keys, certificates and settings.  The
pool may run meanwhile.  JetStream is not in it, because it is filled again from the log.

examples:
  kettle backup create /backup/monday
  kettle backup create /backup/monday --passphrase-file /root/backup-passphrase
  kettle backup verify /backup/monday
  kettle backup restore /backup/monday --home /var/lib/kettle

kettle backup COMMAND --help explains each.
"""

_CREATE: Final = """\
Write a backup into a directory that is not there yet.  It holds the keys of the pool: who has it can be anybody in the pool.  With
--passphrase-file the keys are sealed (AES-256-GCM), and without the passphrase nobody can restore it; keep a copy of it elsewhere.
"""

_VERIFY: Final = """\
Prove a backup, without the pool: compare all sums, see whether the keys fit each other, restore the database into a server that is
thrown away, and audit its log from the first frame on.  --quick leaves out the last two.

Exit status 1 if the pool could not be restored from it as it was.
"""

_RESTORE: Final = """\
Bring a pool back.  The directory of the pool is empty, or is that of the same pool without its database (HOME/postgres): then keys
and files that are there stay.  Nothing is started: look at it, and then run kettle up.

If the bus has frames that are not in the backup, nothing is restored: restore a newer backup, or the archive of the write-ahead log
up to a later moment, or accept the loss with --accept-loss.
"""


def arguments(parser: argparse.ArgumentParser) -> None:
    """What the command takes."""
    commands = parser.add_subparsers(dest="what", metavar="COMMAND", required=True)
    form = argparse.RawDescriptionHelpFormatter
    for name, says, description in (
        ("create", "write one", _CREATE),
        ("verify", "prove one", _VERIFY),
        ("restore", "bring a pool back", _RESTORE),
    ):
        each = commands.add_parser(name, help=says, description=description, formatter_class=form)
        each.add_argument("directory", type=Path, metavar="DIRECTORY", help="the backup")
        each.add_argument(
            "--passphrase-file",
            type=Path,
            metavar="FILE",
            help="its first line seals the keys of the pool, and opens them",
        )
        if name == "verify":
            each.add_argument("--quick", action="store_true", help="sums and keys alone")
        if name == "restore":
            each.add_argument(
                "--accept-loss",
                action="store_true",
                help="go on though the bus knows more: what was recorded after the backup is lost",
            )
        json_option(each)
        if name != "verify":
            home_option(each)


def run(arguments: argparse.Namespace, screen: Screen) -> int:
    """Do it."""
    match arguments.what:
        case "create":
            return _create(arguments, screen)
        case "verify":
            return _verify(arguments, screen)
        case _:
            return _restore(arguments, screen)


def _create(arguments: argparse.Namespace, screen: Screen) -> int:
    from importlib.metadata import version

    from kettle.backup import Source, create
    from kettle.client import PoolFile
    from kettle.pool.home import Home
    from kettle_services.cli.backup.servers import outside, settings_of
    from kettle_services.cli.log.databases import databases
    from kettle_services.cli.output.progress_bars import bars

    home = _home(arguments)
    addresses, settings = databases(home), settings_of(home)
    source = Source(
        home=home,
        kettle=version("kettle"),
        pool=PoolFile.load(home).pool,
        pool_id=Home(home).pool_id(),
        database_url=addresses[0],
        settings=settings,
        outside=outside(home, settings),
        elsewhere=len(addresses) - 1,
    )
    passphrase = _passphrase(arguments)
    with bars(screen, "parts") as bar:
        made = _done(create(source, arguments.directory.absolute(), passphrase=passphrase, told=bar))
    if screen.as_json:
        screen.json(made)
        return 0
    screen.say(f"{arguments.directory}: {_summary(made)}")
    if not passphrase:
        screen.note(
            "The keys of the pool are in it as they are: keep it as you keep those, or seal them with --passphrase-file."
        )
    for path in made.outside:
        screen.note(f"Not in it, because it is elsewhere: {path}")
    if made.elsewhere:
        screen.note(
            f"Not in it: {made.elsewhere} further databases of access points; back them up where they are."
        )
    return 0


def _verify(arguments: argparse.Namespace, screen: Screen) -> int:
    from kettle.backup import verify
    from kettle_services.cli.log.folds import WORKING_SETS
    from kettle_services.cli.output.progress_bars import bars

    with bars(screen, "parts") as bar:
        found = _done(
            verify(
                arguments.directory.absolute(),
                folds=WORKING_SETS,
                passphrase=_passphrase(arguments),
                full=not arguments.quick,
                told=bar,
            )
        )
    if screen.as_json:
        screen.json(found)
        return 0 if found.clean else 1
    for sentence in found.keys:
        screen.trouble(sentence)
    if found.audit is not None:
        for check in found.audit.checks:
            for first in check.firsts:
                screen.trouble(
                    f"{check.name}: first in {first.shard} at position {first.position}: {first.sentence}"
                )
    if not found.keys_read:
        screen.note("The keys are sealed and were not looked at: name the file of their passphrase.")
    if found.audit is None:
        screen.note("Only the sums were compared: without --quick the log is restored and audited.")
    verdict = screen.paint("good", "good") if found.clean else screen.paint("NOT good", "bad")
    screen.say(f"The backup is {verdict}: {_summary(found.manifest)}")
    return 0 if found.clean else 1


def _restore(arguments: argparse.Namespace, screen: Screen) -> int:
    from kettle.backup import Target, restore
    from kettle_services.cli.backup.servers import servers_of
    from kettle_services.cli.output.progress_bars import bars

    home = _home(arguments)
    target = Target(home=home, servers=servers_of, accept_loss=arguments.accept_loss)
    with bars(screen, "parts") as bar:
        done = _done(
            restore(arguments.directory.absolute(), target, passphrase=_passphrase(arguments), told=bar)
        )
    if screen.as_json:
        screen.json(done)
        return 0
    screen.say(f"{home}: {_summary(done.manifest)}")
    for each in done.lost:
        screen.say(f"lost: frames {each.frame + 1} to {each.last} of {each.shard}")
    for path in done.manifest.outside:
        if not Path(path).exists():
            screen.note(
                f"{path}, which a setting names or a link, is not in the backup: it has to be there before the start."
            )
    screen.note(
        f"Next: kettle config check --home {home}, then kettle up --home {home}, then kettle log check."
    )
    return 0


def _summary(made: "Manifest") -> str:
    shards = ", ".join(f"{each.shard} to frame {each.frame}" for each in made.shards)
    size = sum(part.size for part in made.parts) / (1 << 20)
    keys = "sealed" if made.sealed else "not sealed"
    return f"the pool {made.pool} at {made.at}, {size:.1f} MiB, keys {keys}; {shards or 'no shards'}."


def _home(arguments: argparse.Namespace) -> Path:
    home: Path = arguments.home or home_directory()
    return home.expanduser().absolute()


def _passphrase(arguments: argparse.Namespace) -> bytes:
    from kettle.backup import BackupError
    from kettle.backup.sealed_part import passphrase_in

    if arguments.passphrase_file is None:
        return b""
    try:
        return passphrase_in(arguments.passphrase_file)
    except BackupError as error:
        raise CommandError(str(error)) from error


def _done(work: Coroutine[Any, Any, T]) -> T:
    from kettle.backup import BackupError

    try:
        return asyncio.run(work)
    except BackupError as error:
        raise CommandError(str(error)) from error
