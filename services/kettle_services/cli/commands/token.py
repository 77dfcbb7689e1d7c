"""`kettle token`: tokens of this pool."""

import argparse
from datetime import datetime
from typing import Final

from kettle_services.cli.errors import UsageError
from kettle_services.cli.options import json_option, login_argument, reach_options, with_pool
from kettle_services.cli.output.screen import Screen
from kettle_services.cli.times import span_up_to

HELP: Final = """\
Tokens with which programs act for you.  An access token is valid for minutes; a refresh token gets new ones for as long as it
is used now and then.  What is printed is shown only once.  Commands show an access token to the pool that is in BEARER_TOKEN, or in
the file that BEARER_TOKEN_FILE names, and may then do no more than it.

examples:
  kettle token create                                     an access token for 20 minutes
  kettle token create --scope condor:/READ --lifetime 5m  one that may only look
  kettle token create --refresh --note laptop             a refresh token
  kettle token list                                       your refresh tokens
  kettle token revoke 81f2...                             end one; an administrator also an access token by its id
  kettle token client create robot --owner ada --scope condor:/WRITE    a program with a secret of its own
"""
_LIFETIME_S: Final = 1200.0


def arguments(parser: argparse.ArgumentParser) -> None:
    """What the command takes."""
    commands = parser.add_subparsers(dest="what", metavar="COMMAND", required=True)
    create = commands.add_parser("create", help="make one")
    _narrowing(create)
    create.add_argument("--lifetime", type=span_up_to("1d"), metavar="TIME", help="default: 20m, at most 1d")
    create.add_argument("--refresh", action="store_true", help="a refresh token")
    create.add_argument("--note", default="", metavar="TEXT", help="what kettle token list calls it")
    json_option(create)
    reach_options(create)
    shown = commands.add_parser("list", help="your refresh tokens")
    shown.add_argument("--everybody", action="store_true", help="of all people, for administrators")
    json_option(shown)
    reach_options(shown)
    revoke = commands.add_parser("revoke", help="end one")
    revoke.add_argument("token", metavar="ID", help="as kettle token list shows it")
    json_option(revoke)
    reach_options(revoke)
    clients = commands.add_parser("client", help="programs with a secret of their own, for administrators")
    _client_arguments(clients)


def _narrowing(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--scope", action="append", default=[], metavar="SCOPE", help="may be repeated")
    parser.add_argument(
        "--audience", action="append", default=[], metavar="WHO", help="for whom it is; may be repeated"
    )


def _client_arguments(parser: argparse.ArgumentParser) -> None:
    commands = parser.add_subparsers(dest="client_what", metavar="COMMAND", required=True)
    create = commands.add_parser("create", help="register one, and print its secret")
    create.add_argument("client", metavar="ID")
    create.add_argument(
        "--owner", type=login_argument, required=True, metavar="NAME", help="who its tokens are about"
    )
    _narrowing(create)
    create.add_argument(
        "--lifetime", type=span_up_to("400d"), default=1200.0, metavar="TIME", help="default: 20m"
    )
    create.add_argument(
        "--exchanges", action="store_true", help="it may exchange tokens of others for narrower ones"
    )
    create.add_argument(
        "--replace", action="store_true", help="one that is registered gets these rules and another secret"
    )
    remove = commands.add_parser("remove", help="let one have no more tokens")
    remove.add_argument("client", metavar="ID")
    shown = commands.add_parser("list", help="those that are registered")
    for each in (create, remove, shown):
        json_option(each)
        reach_options(each)


def run(arguments: argparse.Namespace, screen: Screen) -> int:
    """Do it."""
    match arguments.what, getattr(arguments, "client_what", ""):
        case "create", _:
            return _open(arguments, screen) if arguments.refresh else _create(arguments, screen)
        case "revoke", _:
            with_pool(arguments, lambda pool: pool.iam.revoke_token(arguments.token))
            return screen.done(f"{arguments.token} is not valid any more.")
        case "client", "create":
            return _register(arguments, screen)
        case "client", "remove":
            with_pool(arguments, lambda pool: pool.iam.remove_client(arguments.client))
            return screen.done(f"{arguments.client} gets no more tokens.")
        case "client", _:
            return _show_clients(arguments, screen)
        case _:
            return _show(arguments, screen)


def _create(arguments: argparse.Namespace, screen: Screen) -> int:
    made = with_pool(
        arguments,
        lambda pool: pool.iam.issue_token(
            scopes=arguments.scope, audiences=arguments.audience, lifetime=arguments.lifetime or _LIFETIME_S
        ),
    )
    if screen.as_json:
        screen.json(made)
        return 0
    screen.say(made.token)
    screen.note(f"It is valid until {_when(made.expires)}, for: {' '.join(made.scopes)}.")
    return 0


def _open(arguments: argparse.Namespace, screen: Screen) -> int:
    if arguments.lifetime is not None:
        raise UsageError(
            "a refresh token lives for as long as it is used now and then: --lifetime is for access tokens"
        )
    opened = with_pool(
        arguments,
        lambda pool: pool.iam.open_session(
            scopes=arguments.scope, audiences=arguments.audience, note=arguments.note
        ),
    )
    if screen.as_json:
        screen.json({"token": opened.token, "session": opened.made.session, "issuer": opened.made.issuer})
        return 0
    screen.say(opened.token)
    screen.note(
        f"It is for {opened.made.issuer}, and over if it is not used before {_when(opened.made.expires)}."
    )
    return 0


def _show(arguments: argparse.Namespace, screen: Screen) -> int:
    sessions = with_pool(arguments, lambda pool: pool.iam.sessions(everybody=arguments.everybody))
    if screen.as_json:
        screen.json(sessions)
        return 0
    rows = [
        (each.session, each.subject, each.note, _when(each.used), _when(each.expires), " ".join(each.scopes))
        for each in sessions
    ]
    screen.table(("ID", "OF", "NOTE", "USED", "UNTIL", "SCOPES"), rows)
    return 0


def _register(arguments: argparse.Namespace, screen: Screen) -> int:
    secret = with_pool(
        arguments,
        lambda pool: pool.iam.register_client(
            arguments.client,
            owner=arguments.owner,
            scopes=arguments.scope,
            audiences=arguments.audience,
            lifetime=arguments.lifetime,
            exchanges=arguments.exchanges,
            replace=arguments.replace,
        ),
    )
    if screen.as_json:
        screen.json({"client": arguments.client, "secret": secret})
        return 0
    screen.say(secret)
    screen.note(f"This is the secret of {arguments.client}; it is shown only once.")
    return 0


def _show_clients(arguments: argparse.Namespace, screen: Screen) -> int:
    clients = with_pool(arguments, lambda pool: pool.iam.clients())
    if screen.as_json:
        screen.json(clients)
        return 0
    rows = [
        (each.client, each.owner, "yes" if each.exchanges else "no", each.by, " ".join(each.scopes))
        for each in clients
    ]
    screen.table(("ID", "ABOUT", "EXCHANGES", "REGISTERED BY", "SCOPES"), rows)
    return 0


def _when(at: float) -> str:
    return f"{datetime.fromtimestamp(at).astimezone():%Y-%m-%d %H:%M:%S}"
