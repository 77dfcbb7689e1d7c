"""`kettle pki`: certificates for a site that has no authority of its own."""

import argparse
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal

from kettle.client import home_directory
from kettle_services.cli.errors import CommandError
from kettle_services.cli.options import at_least, home_option, json_option
from kettle_services.cli.output.screen import Screen

if TYPE_CHECKING:
    from collections.abc import Sequence

    from kettle.pki.authority_files import AuthorityFiles, Kept

HELP: Final = """\
Connections of a pool are encrypted when its servers have certificates, and its clients the certificate of the authority
that signed them.  A site that has no authority of its own makes one here; it is enough for a trial, and for pools whose
administrator looks after it.  docs/how-to/encrypt-connections.md goes through all of it.

examples:
  kettle pki init --name "Physics cluster"           once: the authority
  kettle pki issue bus.example.org 192.0.2.7         for a server, by every name and address that clients use
  kettle pki issue --client monitoring               for a client that a server knows by its certificate
  kettle pki show                                    what there is, and how long it lasts
  kettle pki show /etc/ssl/certs/bus.pem             what any certificate says
  kettle pki renew                                   all that last for less than a third of their time

Everybody gets ca.pem.  Nobody gets ca.key: its holder can pass for any server of the pool.
"""

_INIT: Final = """\
Make an authority: ca.pem, its certificate, which every client and server gets, and ca.key, which stays where it is.
The pin that is printed identifies the authority; a machine that joins later can check ca.pem by it.
"""
_ISSUE: Final = """\
Make a certificate.  For a server give every name and address by which clients connect to it, the usual one first: a client
refuses a server whose certificate does not have the name in its URL.  For a client give its name.
The files are called by the first name.  Give the server NAME.pem and NAME.key, and nobody else NAME.key.
"""
_SHOW: Final = """\
The certificates of the authority, or those that are named: by the names of their files here, or by paths of others.
"""
_RENEW: Final = """\
Replace certificates by ones with the same names and key that last as long again: those that are named, else all that have
less than a third of their time left, so that it can run every day.  The files are replaced by renaming.
Servers of this pool use the new ones after: kettle reconfig.
"""


def arguments(parser: argparse.ArgumentParser) -> None:
    """What the command takes."""
    commands = parser.add_subparsers(dest="what", metavar="COMMAND", required=True)
    form = argparse.RawDescriptionHelpFormatter
    init = commands.add_parser("init", help="make an authority", description=_INIT, formatter_class=form)
    init.add_argument("--name", default="Kettle trial authority", help="what it is called in certificates")
    _days(init, "the authority", 3650)
    make = commands.add_parser("issue", help="make a certificate", description=_ISSUE, formatter_class=form)
    make.add_argument("names", nargs="+", metavar="NAME|ADDRESS", help="by which it is reached")
    make.add_argument("--client", action="store_true", help="for a client, which has one name")
    _days(make, "the certificate", 365)
    show = commands.add_parser("show", help="what there is", description=_SHOW, formatter_class=form)
    show.add_argument("names", nargs="*", metavar="NAME|FILE", help="these (default: all of the authority)")
    renew = commands.add_parser(
        "renew", help="prolong certificates", description=_RENEW, formatter_class=form
    )
    renew.add_argument("names", nargs="*", metavar="NAME", help="these, in any case")
    renew.add_argument("--days", type=at_least(1), metavar="N", help="how long (default: as long as before)")
    for each in (init, make, show, renew):
        each.add_argument(
            "--directory",
            type=Path,
            metavar="DIR",
            help="of the authority (default: pki in the pool's directory)",
        )
        json_option(each)
        home_option(each)


def _days(parser: argparse.ArgumentParser, what: str, usual: int) -> None:
    parser.add_argument(
        "--days",
        type=at_least(1),
        default=usual,
        metavar="N",
        help=f"how long {what} lasts (default: {usual})",
    )


def run(arguments: argparse.Namespace, screen: Screen) -> int:
    """Do it."""
    from kettle.pki.authority_files import AuthorityFiles
    from kettle.pki.certificates import CertificateError

    files = AuthorityFiles(arguments.directory or _usual(arguments.home or home_directory()))
    now = datetime.now(UTC)
    try:
        match arguments.what:
            case "init":
                made = files.make(arguments.name, now=now, days=arguments.days)
                _say_made(made, screen)
                screen.note("Next: kettle pki issue NAME ..., for each server.")
            case "issue":
                kind: Literal["server", "client"] = "client" if arguments.client else "server"
                _say_made(files.issue(arguments.names, kind, now=now, days=arguments.days), screen)
            case "renew":
                _renew(files, arguments, now, screen)
            case _:
                _show(_chosen(files, arguments.names), now, screen)
    except CertificateError as error:
        raise CommandError(str(error)) from error
    return 0


def _usual(home: Path) -> Path:
    """The directory in the pool's own, which is nobody else's even where it is made for this."""
    from kettle.pool.home import Home

    home.mkdir(mode=0o700, parents=True, exist_ok=True)
    return Home(home).certificates


def _say_made(made: "Kept", screen: Screen) -> None:
    if screen.as_json:
        screen.json(_row(made))
        return
    screen.say(f"{made.certificate} is valid until {made.facts.ends:%Y-%m-%d}; its key is {made.key}.")
    if made.facts.kind == "authority":
        screen.say(f"pin {made.facts.pin}")


def _renew(files: "AuthorityFiles", arguments: argparse.Namespace, now: datetime, screen: Screen) -> None:
    due = [
        each.name for each in files.all() if each.facts.kind != "authority" and now >= each.facts.renewal()
    ]
    renewed = [files.renew(name, now=now, days=arguments.days) for name in arguments.names or due]
    if screen.as_json:
        screen.json([_row(each) for each in renewed])
        return
    for each in renewed:
        screen.say(f"{each.certificate} is valid until {each.facts.ends:%Y-%m-%d}.")
    if renewed:
        screen.note("Servers of this pool use them after: kettle reconfig.")
    else:
        screen.note("None is due: each has more than a third of its time left.")


def _chosen(files: "AuthorityFiles", names: "Sequence[str]") -> "list[Kept]":
    from kettle.pki.authority_files import of_file

    if not names:
        return files.all()
    return [
        of_file(Path(name)) if "/" in name or Path(name).is_file() else files.kept(name) for name in names
    ]


def _show(found: "Sequence[Kept]", now: datetime, screen: Screen) -> None:
    if screen.as_json:
        screen.json([_row(each) for each in found])
        return
    rows = [
        (
            each.name,
            each.facts.kind,
            _left(each.facts.ends, now),
            each.facts.issuer,
            each.facts.serial[:16],
            " ".join(each.facts.names) or each.facts.subject,
        )
        for each in found
    ]
    screen.table(("NAME", "KIND", "ENDS", "ISSUER", "SERIAL", "NAMES"), rows)
    for each in found:
        if each.facts.kind == "authority":
            screen.say(f"pin of {each.name}: {each.facts.pin}")


def _left(ends: datetime, now: datetime) -> str:
    days = (ends - now).days
    return f"{ends:%Y-%m-%d} ({f'{days} days' if ends > now else 'expired'})"


def _row(each: "Kept") -> dict[str, Any]:
    said = each.facts
    return {
        "name": each.name,
        "kind": said.kind,
        "certificate": str(each.certificate),
        "key": str(each.key),
        "subject": said.subject,
        "names": list(said.names),
        "issuer": said.issuer,
        "serial": said.serial,
        "begins": said.begins.isoformat(),
        "ends": said.ends.isoformat(),
        "pin": said.pin,
    }
