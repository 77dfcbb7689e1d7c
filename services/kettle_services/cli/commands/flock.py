"""`kettle flock`: other pools that this one's jobs may use, and schedds of others that may use this one."""

import argparse
import os
import sys
from pathlib import Path
from typing import Final

from kettle.auth.bus_permissions import FORWARDER, VISITOR, permissions
from kettle.bus.credentials import Credential
from kettle.client import home_directory
from kettle.flocking.passes import Pass, PassError, Passes, decoded, encoded
from kettle.pool.home import Home
from kettle_services.cli.errors import CommandError, UsageError
from kettle_services.cli.options import home_option, json_option, pool_options, with_pool
from kettle_services.cli.output.screen import Screen
from kettle_wire.flocking import is_visitor
from kettle_wire.identity import visitor
from kettle_wire.subjects import Subjects

HELP: Final = """\
Jobs that find no slot in their own pool can use others.  The administrator of the other pool admits a schedd and makes
a pass for it; the administrator of the schedd installs the pass.

examples:
  kettle flock show                                          who sends jobs where, and why pools are not reached
  kettle flock pass schedd@physics -o physics.pass           there: a pass for a schedd that flock_from admits
  kettle flock use chemistry.pass --as chemistry             here: then put "chemistry" into flock_to of [schedd]

kettle flock COMMAND --help explains each.
"""

_SHOW: Final = """\
For each schedd of this pool: the other pools that it may use, in their order, whether they are reached, how many of them
are asked at the moment, and how many jobs run there; then the submitters of other pools' schedds that send jobs here.
"""

_ADMIT: Final = """\
Make the pass of a schedd that may send jobs here.  Put its name into flock_from of [master] first, and run
`kettle reconfig`: that makes its credential.  The pass is a secret: its holder can run jobs here as any user of that
schedd's domain.  To withdraw it, remove the name from flock_from and run `kettle reconfig`: it ends at once.  With the file
credentials/visitor-NAME@DOMAIN.creds of the pool's directory removed as well, a later pass has another key.

A collector that may forward its ads here has its name in view_from instead; its pass is made in the same way, and permits
nothing else.

The pass says where the bus is: give --nats-url if it is reached by another address from there.
If the bus is a NATS server of the site's own, that server has to admit the visitor: make it an NKey user with what --rights
prints, and give the file with its seed as --key.
"""

_USE: Final = """\
Install the pass for another pool, for the schedd and the shadow of this one.  The name is the pool's name here:
in flock_to of [schedd] or view_pools of [collector], in RemotePool and LastRemotePool of jobs, and in FlockTo of those that name their pools.
An existing pass under the name is replaced; its users find the new one within seconds of a failure.
"""


def arguments(parser: argparse.ArgumentParser) -> None:
    """What the command takes."""
    commands = parser.add_subparsers(dest="what", metavar="COMMAND", required=True)
    form = argparse.RawDescriptionHelpFormatter
    show = commands.add_parser("show", help="who sends jobs where", description=_SHOW, formatter_class=form)
    json_option(show)
    pool_options(show)
    make = commands.add_parser("pass", help="let a schedd in", description=_ADMIT, formatter_class=form)
    make.add_argument("visitor", metavar="NAME@DOMAIN", help="the name by which flock_from admits it")
    make.add_argument(
        "--view", action="store_true", help="--rights are those of a collector that view_from admits"
    )
    make.add_argument("--rights", action="store_true", help="print what it may do on the bus, as JSON")
    make.add_argument(
        "--key", type=Path, metavar="FILE", help="its NKey seed, where the master has made none"
    )
    make.add_argument("--nats-url", default="", metavar="URL", help="where its side reaches our bus")
    make.add_argument("-o", "--output", type=Path, metavar="FILE", help="default: standard output")
    json_option(make)
    home_option(make)
    use = commands.add_parser("use", help="take a pass in", description=_USE, formatter_class=form)
    use.add_argument("file", metavar="FILE", type=Path, help="what `kettle flock pass` made")
    use.add_argument("--as", dest="name", required=True, metavar="POOL", help="how the pool is called here")
    json_option(use)
    home_option(use)


def run(arguments: argparse.Namespace, screen: Screen) -> int:
    """Do it."""
    match arguments.what:
        case "pass":
            return _pass(arguments, screen)
        case "use":
            return _use(arguments, screen)
        case _:
            return _show(arguments, screen)


def _pass(arguments: argparse.Namespace, screen: Screen) -> int:
    from kettle.client.connections.pool_file import PoolFile

    home: Path = arguments.home or home_directory()
    if not is_visitor(arguments.visitor):
        raise UsageError(f"'{arguments.visitor}' is no name of a visiting schedd: write name@domain")
    pool = PoolFile.load(home)
    if arguments.rights:
        publish, subscribe = permissions(
            FORWARDER if arguments.view else VISITOR, Subjects(pool.pool), visitor(arguments.visitor)
        )
        rights = {
            "publish": publish,
            "subscribe": subscribe,
        }
        screen.json(rights)
        return 0
    own = [Home(home).credential(f"{role}-{arguments.visitor}") for role in (VISITOR, FORWARDER)]
    credential = arguments.key or next((path for path in own if path.exists()), own[0])
    try:
        shown = Credential.read(credential)
    except OSError as error:
        raise CommandError(
            f"{credential} cannot be read ({error.strerror}): add {arguments.visitor} to flock_from or view_from in the "
            "table [master] of the settings, and say: kettle reconfig"
        ) from error
    except ValueError as error:
        raise CommandError(f"{credential} holds no NKey seed of a user") from error
    url = arguments.nats_url or pool.nats_url
    ca = _authority(pool.ca) if pool.ca else ""
    own = Pass(pool=pool.pool, nats_url=url, visitor=arguments.visitor, seed=shown.seed, jwt=shown.jwt, ca=ca)
    data = encoded(own)
    try:
        decoded(data, str(credential))
    except PassError as error:
        raise CommandError(f"{credential} holds no NKey seed of a user: {error}") from error
    if arguments.output is None:
        screen.octets(data)
        return 0
    try:
        with os.fdopen(os.open(arguments.output, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
            file.write(data)
    except OSError as error:
        raise UsageError(f"{arguments.output}: {error.strerror}") from error
    if screen.as_json:
        screen.json({"file": str(arguments.output), "visitor": arguments.visitor})
    screen.note(f"{arguments.output} lets {arguments.visitor} in: send it as you would send a password.")
    return 0


def _authority(path: str) -> str:
    """The certificate by which the other side will trust our bus."""
    try:
        return Path(path).read_text(encoding="ascii")
    except (OSError, UnicodeDecodeError) as error:
        raise CommandError(
            f"{path}, the certificate of this pool's authority, cannot be read: {error}"
        ) from error


def _use(arguments: argparse.Namespace, screen: Screen) -> int:
    try:
        data = sys.stdin.buffer.read() if str(arguments.file) == "-" else arguments.file.read_bytes()
        own = decoded(data, str(arguments.file))
        Passes(arguments.home or home_directory()).keep(arguments.name, own)
    except PassError as error:
        raise UsageError(str(error)) from error
    except OSError as error:
        raise UsageError(f"{error.filename or arguments.file}: {error.strerror}") from error
    if screen.as_json:
        screen.json({"pool": arguments.name, "visitor": own.visitor})
        return 0
    screen.say(
        f'The pool {arguments.name} lets us in as {own.visitor}. Add "{arguments.name}" to flock_to in the table [schedd] of '
        "the settings, or to view_pools in the table [collector] if the pass is for forwarding ads, and say: kettle reconfig."
    )
    return 0


def _show(arguments: argparse.Namespace, screen: Screen) -> int:
    schedds = with_pool(arguments, lambda pool: pool.ads("Scheduler"))
    submitters = with_pool(arguments, lambda pool: pool.ads("Submitter"))
    ours = [
        {
            "schedd": ad.get("Name"),
            "flock_to": ad.get("FlockTo", ""),
            "level": ad.get("FlockLevel", 0),
            "flocked_jobs": ad.get("TotalFlockedJobs", 0),
            "states": ad.get("FlockStates", ""),
        }
        for ad in schedds
    ]
    theirs = [
        {
            "submitter": ad.get("Name"),
            "schedd": ad.get("ScheddName"),
            "idle": ad.get("IdleJobs"),
            "running": ad.get("RunningJobs"),
        }
        for ad in submitters
        if ad.get("SubmitterTag")
    ]
    if screen.as_json:
        screen.json({"schedds": ours, "visitors": theirs})
        return 0
    for one in ours:
        if not one["flock_to"]:
            screen.say(f"{one['schedd']} keeps its jobs in this pool.")
            continue
        screen.say(
            f"{one['schedd']} may use {one['flock_to']}; asked now: {one['level']}; jobs there: {one['flocked_jobs']}."
        )
        for state in str(one["states"]).split("; "):
            screen.say(f"  {state}")
    for each in theirs:
        screen.say(
            f"{each['submitter']} of {each['schedd']} visits: {each['running']} run here, {each['idle']} wait."
        )
    return 0
