"""`kettle iam`: who a credential would be here, and what its holder might do."""

import argparse
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

from kettle_services.cli.configuration.outcome import environ_of
from kettle_services.cli.errors import UsageError
from kettle_services.cli.options import home_option, json_option
from kettle_services.cli.output.screen import Screen

if TYPE_CHECKING:
    from kettle.auth.mapping.policy import Decision, Mapped
    from kettle.auth.mapping.principals import Principal

HELP: Final = """\
Who may do what: try out the map files, the rules and the lists of [authorization] in kettle.toml.  Nothing is asked and
nothing is changed.

examples:
  kettle iam check                          are the files right?  all that is wrong, with file and line
  kettle iam check --rules new.toml         would this file be?
  kettle iam test claims.json               who would this token be, and because of which lines
  kettle iam test - < token                 the same for a token; it is never printed
  kettle iam test --login ada --service schedd
                                            an account of the access point, at the schedd

kettle iam COMMAND --help explains each.
"""

_CHECK: Final = """\
Check the map files, the rules file and the lists.  What cannot be used is refused: exit status 1.  Warnings are not refused: patterns that match more than they seem to, lines that never count,
entries that let everybody in.  `kettle config check` does the same.
"""

_TEST: Final = """\
Say who a credential would be in the pool: name, groups, accounting group, and each level with the rule that gives it or what
is missing.  The credential is a file with a token, a file with its claims as JSON, - for standard input, or the token itself
(then others see it in the list of processes).

Signature, times and audience are not checked here: the answer is about the claims.  The token is not printed.
The exit status is 1 if it would be nobody.
"""


def arguments(parser: argparse.ArgumentParser) -> None:
    """What the command takes."""
    commands = parser.add_subparsers(dest="what", metavar="COMMAND", required=True)
    form = argparse.RawDescriptionHelpFormatter
    check = commands.add_parser("check", help="are the files right", description=_CHECK, formatter_class=form)
    test = commands.add_parser("test", help="who would this be", description=_TEST, formatter_class=form)
    test.add_argument("credential", nargs="?", metavar="TOKEN|FILE|-", help="a token, or its claims as JSON")
    test.add_argument("--login", metavar="NAME", help="instead: an account of this machine")
    test.add_argument("--dn", metavar="SUBJECT", help="instead: a certificate with this subject")
    test.add_argument("--address", type=_address, default="", metavar="IP", help="from where it would ask")
    test.add_argument(
        "--service",
        type=_service,
        default="",
        metavar="SERVICE",
        help="at which service: its own lists count first",
    )
    for each in (check, test):
        each.add_argument(
            "--map",
            action="append",
            default=[],
            type=Path,
            metavar="FILE",
            help="this map file instead; may be repeated",
        )
        each.add_argument("--rules", type=Path, metavar="FILE", help="this rules file instead")
        json_option(each)
        home_option(each)


def _address(text: str) -> str:
    from ipaddress import ip_address

    try:
        return str(ip_address(text)) if text else ""
    except ValueError as error:
        raise argparse.ArgumentTypeError(f"'{text}' is no IP address") from error


def _service(text: str) -> str:
    from kettle.auth.mapping.access_lists import SUBSYSTEMS

    if text and text.upper() not in SUBSYSTEMS:
        known = sorted(each.lower() for each in SUBSYSTEMS)
        raise argparse.ArgumentTypeError(f"there is no service '{text}': it is one of {', '.join(known)}")
    return text


def run(arguments: argparse.Namespace, screen: Screen) -> int:
    """Do it."""
    return _test(arguments, screen) if arguments.what == "test" else _check(arguments, screen)


def _check(arguments: argparse.Namespace, screen: Screen) -> int:
    from kettle.auth.mapping.findings import refusals
    from kettle_services.cli.access.site import read

    site = read(environ_of(arguments.home), maps=arguments.map, rules=arguments.rules)
    refused = refusals(site.findings)
    if screen.as_json:
        screen.json(
            [
                {"where": str(each.place), "sentence": each.sentence, "warning": each.warning}
                for each in site.findings
            ]
        )
        return 1 if refused else 0
    for each in site.findings:
        if each.warning:
            screen.note(f"warning: {each.place}: {each.sentence}")
        else:
            screen.trouble(f"{each.place}: {each.sentence}")
    if refused:
        return 1
    policy = site.policy
    lines, rules, bans = sum(len(each.lines) for each in policy.maps), len(policy.rules), len(policy.bans)
    screen.say(f"The files are right: {lines} lines of map files, {rules} rules, {bans} bans.")
    return 0


def _test(arguments: argparse.Namespace, screen: Screen) -> int:
    from kettle.auth.mapping.findings import refusals
    from kettle.auth.mapping.levels import Level
    from kettle_services.cli.access.site import read

    principal, remarks = _principal(arguments)
    site = read(
        environ_of(arguments.home), service=arguments.service, maps=arguments.map, rules=arguments.rules
    )
    for each in refusals(site.findings):
        screen.trouble(f"{each.place}: {each.sentence}")
    if refusals(site.findings):
        return 1
    who = site.policy.identify(principal, time.time())
    levels = [
        site.policy.decide_for(principal, who, level, subsystem=arguments.service)
        for level in Level
        if level != "OWNER"
    ]
    if screen.as_json:
        screen.json(_as_json(principal, who, levels, remarks))
    else:
        _show(principal, who, levels, screen)
        for remark in remarks:
            screen.note(remark)
    return 1 if who.code else 0


def _principal(arguments: argparse.Namespace) -> "tuple[Principal, list[str]]":
    """Who is meant, and what has to be said about the credential."""
    from kettle.auth.mapping.principals import Address, Principal, local
    from kettle_services.cli.access.credentials import shown

    given = [each for each in (arguments.credential, arguments.login, arguments.dn) if each is not None]
    if len(given) != 1:
        raise UsageError("give one credential: a token, a file with its claims, --login or --dn")
    address = Address(arguments.address)
    if arguments.login is not None:
        return local(arguments.login, address), []
    if arguments.dn is not None:
        return Principal(method="SSL", text=arguments.dn, address=address), []
    token = shown(arguments.credential)
    remarks = (
        ["The signature was not checked: this is who the claims would be if it is right."]
        if token.algorithm
        else []
    )
    expires = token.claims.get("exp")
    if isinstance(expires, int | float) and expires < time.time():
        remarks.append("The token has expired: services refuse it.")
    return token.principal(address), remarks


def _show(principal: "Principal", who: "Mapped", levels: "Sequence[Decision]", screen: Screen) -> None:
    facts = [
        ("name", who.name or f"nobody: {who.why}"),
        ("groups", ", ".join(who.groups)),
        ("accounting group", who.accounting_group),
        ("VO", who.vo),
        (
            "limited to",
            ""
            if principal.limits is None
            else ", ".join(sorted(principal.limits)) or "nothing, by its scopes",
        ),
        *(("because of", str(each)) for each in who.because),
    ]
    for name, value in facts:
        if value:
            screen.say(f"{name:<17} {value}")
    if who.code:
        return
    screen.say()
    rows = [(each.level.value, "yes" if each.allowed else "no", _reason(each)) for each in levels]
    screen.table(
        ("LEVEL", "HAS IT", "BECAUSE"),
        rows,
        styles=["good" if each.allowed else "dim" for each in levels],
        whole=True,
    )


def _reason(decision: "Decision") -> str:
    if not decision.allowed:
        return decision.missing
    return str(decision.because) if decision.because else "it is everybody's: there is no list"


def _as_json(
    principal: "Principal", who: "Mapped", levels: "Sequence[Decision]", remarks: Sequence[str]
) -> dict[str, object]:
    return {
        "method": principal.method,
        "name": who.name or None,
        "owner": who.owner or None,
        "domain": who.domain or None,
        "groups": who.groups,
        "accounting_group": who.accounting_group or None,
        "vo": who.vo or None,
        "code": who.code or None,
        "why": who.why or None,
        "because": [
            {"file": each.place.file, "line": each.place.line, "rule": each.rule, "captured": each.captured}
            for each in who.because
        ],
        "limits": None if principal.limits is None else sorted(principal.limits),
        "levels": [
            {
                "level": each.level,
                "allowed": each.allowed,
                "because": str(each.because or ""),
                "missing": each.missing,
            }
            for each in levels
        ],
        "remarks": remarks,
    }
