"""`kettle why`: why jobs are where they are."""

import argparse
import re
from typing import Final

import msgspec

from kettle.classad.printing import quoted_string
from kettle.client import Client, JobId, WhyReports
from kettle.client.explanations import match_analysis
from kettle.client.explanations.job_state import Answer, answer
from kettle.client.explanations.many_jobs import Answers, answers, heading, single
from kettle_services.cli.errors import UsageError
from kettle_services.cli.options import (
    everybody_option,
    job_options,
    json_option,
    now_of,
    pool_options,
    recorded_options,
    selection,
    with_pool,
)
from kettle_services.cli.output.screen import Screen
from kettle_wire.commands.negotiator import Analysis

_REAL: Final = re.compile(r"\b\d\.\d{15}E[+-]\d\d+\b")
_JOB: Final = re.compile(r"[0-9]+\.[0-9]*")
_NODE: Final = re.compile(r"([0-9]+)\.(.+)")
HELP: Final = """\
Why jobs wait, are held, run where they run, or how they ended, according to the log of the queue and of the last negotiation,
and what to do about it.  Of many jobs, those with one reason are told together.  For a job that waits, the table shows every
clause of its Requirements and of the slots' (of START those of the owner's policy), how many slots pass it alone, and how many
would match if only it was different; slots are evaluated as if nothing ran there.

examples:
  kettle why 12.3
  kettle why 12                    all jobs of a cluster, by reasons
  kettle why                       all of yours
  kettle why --batch sweep         those of a batch (batch_name)
  kettle why --constraint 'JobStatus == 5'
  kettle why 17.merge              the node merge of the DAG whose DAG job is cluster 17; while it runs also x.dag.merge
  kettle why 12.3 --json           with the record and all figures, for programs
  kettle why 12.3 --simulated events --at 2h
"""


def arguments(parser: argparse.ArgumentParser) -> None:
    """What the command takes."""
    job_options(parser, verb="tell of")
    parser.add_argument(
        "--batch",
        default="",
        metavar="NAME",
        help="only jobs of this batch (batch_name in their description)",
    )
    everybody_option(parser)
    json_option(parser)
    pool_options(parser)
    recorded_options(parser)


def run(arguments: argparse.Namespace, screen: Screen) -> int:
    """Ask and tell."""
    if arguments.batch:
        of_batch = f"JobBatchName == {quoted_string(arguments.batch)}"
        said = arguments.constraint
        arguments.constraint = f"({said}) && {of_batch}" if said else of_batch
    if len(arguments.ids) == 1 and "." in arguments.ids[0] and not _JOB.fullmatch(arguments.ids[0]):
        return _tell_node(arguments, screen)
    select = selection(arguments)
    if len(select.jobs) == 1 and not (select.clusters or select.constraint or select.owners):
        report = with_pool(arguments, lambda pool: pool.why(select.jobs[0]))
        _tell(answer(report, now=now_of(arguments)), screen)
        return 0

    async def ask(pool: Client) -> WhyReports:
        anybody = arguments.all or select.jobs or select.clusters or select.owners
        mine = [] if anybody or not pool.pool.user else [pool.pool.user]
        return await pool.why_jobs(msgspec.structs.replace(select, owners=[*select.owners, *mine]))

    reports = with_pool(arguments, ask)
    if single(reports):
        _tell(answer(reports.groups[0].report, now=now_of(arguments)), screen)
        return 0
    if select.clusters and not (reports.groups or reports.unmade or reports.ended):
        # One that never was, or whose jobs the history does not have yet: the log knows.
        report = with_pool(arguments, lambda pool: pool.why(JobId(select.clusters[0], 0)))
        _tell(answer(report, now=now_of(arguments)), screen)
        return 0
    told = answers(reports, now=now_of(arguments))
    if screen.as_json:
        screen.json(msgspec.to_builtins(told))
    else:
        show_groups(told, screen)
    return 0


def _tell_node(arguments: argparse.Namespace, screen: Screen) -> int:
    """The argument is no job, but a node of a workflow."""
    from kettle_services.cli.dag import running

    text = arguments.ids[0]
    if match := _NODE.fullmatch(text):
        arguments.workflow, arguments.node = int(match[1]), match[2]
    elif found := with_pool(arguments, lambda pool: running.workflow_called(pool, text)):
        arguments.workflow, arguments.node = found
    else:
        raise UsageError(
            f"'{text}' is neither a job nor a node of a DAG of yours in the queue: write CLUSTER.PROC, as in 12.0, or "
            "CLUSTER.NODE, as in 12.merge"
        )
    return running.why(arguments, screen)


def _tell(told: Answer, screen: Screen) -> None:
    if screen.as_json:
        screen.json(msgspec.to_builtins(told))
    else:
        show(told, screen)


def show_groups(told: Answers, screen: Screen) -> None:
    """Each group's sentences; who wants the table of its clauses asks for one job."""
    if not told.groups and not told.others:
        screen.say("There is no such job in the queue.")
    for number, group in enumerate(told.groups):
        if number:
            screen.say()
        screen.say(screen.paint(heading(group), "strong"))
        for sentence in group.answer.sentences[1 if group.jobs == 1 else 0 :]:
            text = short_reals(sentence)
            screen.say(text if group.jobs == 1 else f"  {text}")
    if told.others:
        if told.groups:
            screen.say()
        for sentence in told.others:
            screen.say(sentence)


def show(told: Answer, screen: Screen) -> None:
    """The sentences, then the clauses as a table."""
    first, *others = map(short_reals, told.sentences)
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


def short_reals(text: str) -> str:
    """The text with reals as people write them: the language of ads has all their digits."""
    return _REAL.sub(lambda found: f"{float(found[0]):.15g}", text)


def _show_analysis(analysis: Analysis, screen: Screen) -> None:
    screen.say()
    rows, styles = match_analysis.table(analysis.clauses)
    rows = [(passes, only, side, short_reals(text)) for passes, only, side, text in rows]
    titles = ("SLOTS PASS", "ONLY THIS", "OF", "CLAUSE")
    screen.table(titles, rows, styles=styles, right=frozenset(titles[:2]))
    more = f"; {analysis.more} more clauses are left out" if analysis.more else ""
    screen.say(f"{analysis.able} of {analysis.slots} slots pass all of them together{more}.")
