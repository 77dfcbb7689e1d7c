"""`kettle why`: why a job is where it is."""

import argparse
import time
from typing import Final

import msgspec

from kettle.client import ClientError, job_id
from kettle_services.cli.errors import UsageError
from kettle_services.cli.explanations import match_analysis
from kettle_services.cli.explanations.job_state import Answer, answer
from kettle_services.cli.options import json_option, pool_options, with_pool
from kettle_services.cli.output.screen import Screen
from kettle_wire.commands.negotiator import Analysis

HELP: Final = """\
Why a job waits, is held, or runs where it runs, according to the log of the queue and of the last negotiation,
and what to do about it.  For a job that waits, the table shows every clause of its Requirements and of the slots', how many
slots pass it alone, and how many would match if only it was different; slots are evaluated as if nothing ran there.

examples:
  kettle why 12.3
  kettle why 12 --json             12 means job 12.0; with the record and all figures, for programs
"""


def arguments(parser: argparse.ArgumentParser) -> None:
    """What the command takes."""
    parser.add_argument("job", metavar="JOB", help="CLUSTER.PROC, as in 12.3")
    json_option(parser)
    pool_options(parser)


def run(arguments: argparse.Namespace, screen: Screen) -> int:
    """Ask and tell."""
    try:
        job = job_id(arguments.job)
    except ClientError as error:
        raise UsageError(str(error)) from error
    report = with_pool(arguments, lambda pool: pool.why(job))
    told = answer(report, now=time.time())
    if screen.as_json:
        screen.json(msgspec.to_builtins(told))
    else:
        show(told, screen)
    return 0


def show(told: Answer, screen: Screen) -> None:
    """The sentences, then the clauses as a table."""
    first, *others = told.sentences
    screen.say(screen.paint(first, "strong"))
    for sentence in others:
        screen.say(sentence)
    if told.analysis is not None and told.analysis.clauses:
        _show_analysis(told.analysis, screen)
    elif told.clauses:
        screen.say()
        rows = [
            (
                f"{clause.refuses} of {told.slots}",
                "the job's" if clause.side == "job" else "the slot's",
                clause.text,
            )
            for clause in told.clauses
        ]
        styles = ["bad" if clause.refuses >= told.slots else "" for clause in told.clauses]
        screen.table(
            ("SLOTS REFUSED", "BY", "CLAUSE"), rows, styles=styles, right=frozenset({"SLOTS REFUSED"})
        )


def _show_analysis(analysis: Analysis, screen: Screen) -> None:
    screen.say()
    rows, styles = match_analysis.table(analysis.clauses)
    titles = ("SLOTS PASS", "ONLY THIS", "OF", "CLAUSE")
    screen.table(titles, rows, styles=styles, right=frozenset(titles[:2]))
    more = f"; {analysis.more} more clauses are left out" if analysis.more else ""
    screen.say(f"{analysis.able} of {analysis.slots} slots pass all of them together{more}.")
