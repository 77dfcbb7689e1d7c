"""`kettle ce check`, `route`, `convert`: route files, without a pool."""

import argparse
import time

from kettle.routes import (
    Counters,
    Decision,
    RouteFileError,
    RouteTable,
    convert_routes,
    read_routes,
    samples,
)
from kettle.routes import (
    check as check_routes,
)
from kettle.routes import route as decide
from kettle.routes.sentences import outcome_sentences, step_sentence
from kettle_services.cli.classad.sources import ads_of_file, text_of_file
from kettle_services.cli.errors import UsageError
from kettle_services.cli.output.screen import Screen
from kettle_wire.ads.types import Ad

_REFUSED = 2


def check(arguments: argparse.Namespace, screen: Screen) -> int:
    """What is wrong with a file."""
    text = text_of_file(arguments.file)
    report = check_routes(text, arguments.file, _ads(arguments), int(time.time()))
    if screen.as_json:
        screen.json(
            {
                "refused": report.refused,
                "warnings": report.warnings,
                "version": report.table.version if report.table else "",
            }
        )
    else:
        for problem in report.refused:
            screen.trouble(f"{arguments.file}: {problem}")
        for problem in report.warnings:
            screen.say(f"{arguments.file}: {problem}")
    if report.table is None:
        return _REFUSED
    if not screen.as_json and not report.warnings:
        routes = len(report.table.routes)
        screen.say(
            screen.paint(f"{arguments.file}: nothing is wrong ({routes} route{'s' * (routes != 1)}).", "good")
        )
    return int(bool(report.warnings) and arguments.strict)


def route(arguments: argparse.Namespace, screen: Screen) -> int:
    """Where jobs would go."""
    try:
        table = read_routes(text_of_file(arguments.file), arguments.file)
    except RouteFileError as error:
        screen.trouble(str(error))
        return _REFUSED
    decided = _decided(table, _ads(arguments))
    if screen.as_json:
        screen.json([decision for _, decision in decided])
    else:
        for number, (ad, decision) in enumerate(decided, 1):
            screen.say(screen.paint(f"{_called(ad, number)}: {decision.route or 'no route'}", "strong"))
            for line in outcome_sentences(decision.set, decision.removed, decision.refusals):
                screen.say(f"  {line}")
            for step in decision.trace if arguments.explain else ():
                screen.say(f"  {step_sentence(step)}")
    return int(any(not decision.route for _, decision in decided))


def convert(arguments: argparse.Namespace, screen: Screen) -> int:
    """The file with its old routes as new ones."""
    try:
        text = convert_routes(text_of_file(arguments.file), arguments.file)
    except RouteFileError as error:
        raise UsageError(str(error)) from error
    screen.block(text.rstrip("\n"))
    return 0


def _ads(arguments: argparse.Namespace) -> list[Ad]:
    return [ad.to_wire() for ad in ads_of_file(arguments.ads)] if arguments.ads else samples()


def _decided(table: RouteTable, ads: list[Ad]) -> list[tuple[Ad, Decision]]:
    """One after the other, each with the routes as full as those before have made them."""
    counters = Counters()
    found: list[tuple[Ad, Decision]] = []
    for ad in ads:
        decision = decide(ad, table, counters, int(time.time()))
        if decision.route:
            counters = counters.with_routed(decision.route)
        found.append((ad, decision))
    return found


def _called(ad: Ad, number: int) -> str:
    names = {name.lower(): value for name, value in ad.items()}
    if "clusterid" in names:
        return f"job {names['clusterid']}.{names.get('procid', 0)}"
    return f"job {number}"
