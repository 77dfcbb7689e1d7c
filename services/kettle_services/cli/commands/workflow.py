"""`kettle workflow`: documents of workflows and jobs, checked and translated before anything is submitted."""

import argparse
import importlib
from typing import Final

from kettle_services.cli.options import json_option
from kettle_services.cli.output.screen import Screen

HELP: Final = """\
Look at documents of workflows: those of PROMINENCE, of one job too, and instances of WfFormat 1.4 to 1.6.
They are JSON.  Nothing is submitted, and no pool is needed.

examples:
  kettle workflow check sweep.json
  kettle workflow dag montage.json > montage.dag

kettle workflow COMMAND --help explains each.
"""

_CHECK: Final = """\
All that is wrong with a document, each with the place of it (a JSON pointer), and what the workflow would be: how many jobs
are submitted, with all instances of factories, how many follow each other at most (height), how many may run at a time
(width), and which take longest one after another.  What is accepted and has no effect is a warning.

Exit status: 0 nothing is wrong; 1 something is; 2 a mistake in what was typed.

examples:
  kettle workflow check sweep.json
  kettle workflow check --json - < sweep.json
"""

_DAG: Final = """\
An instance of WfFormat as a DAG file, which condor_submit_dag takes: each task is a node with its program and what it
needs.  With --replay each node sleeps instead, for so many times the seconds that were recorded of the task.

Exit status: 0 it is written; 1 the instance has a fault, or a task no program that was recorded; 2 a mistake in what was typed.

examples:
  kettle workflow dag montage.json > montage.dag
  kettle workflow dag --replay 0.01 montage.json > quick.dag
"""


def arguments(parser: argparse.ArgumentParser) -> None:
    """What the command takes."""
    commands = parser.add_subparsers(dest="what", metavar="COMMAND", required=True)
    form = argparse.RawDescriptionHelpFormatter
    check = commands.add_parser(
        "check",
        help="all that is wrong with a document, and what it amounts to",
        description=_CHECK,
        formatter_class=form,
    )
    dag = commands.add_parser(
        "dag", help="an instance of WfFormat as a DAG file", description=_DAG, formatter_class=form
    )
    dag.add_argument(
        "--replay", type=float, metavar="FACTOR", help="sleep for FACTOR times the recorded seconds instead"
    )
    for each in (check, dag):
        json_option(each)
        each.add_argument("file", metavar="FILE", help="the document; - is the standard input")


_MODULES: Final = {"check": "checking", "dag": "translating"}


def run(arguments: argparse.Namespace, screen: Screen) -> int:
    """Hand over to the module of the subcommand."""
    module = importlib.import_module(f"kettle_services.cli.workflow.{_MODULES[arguments.what]}")
    return int(module.run(arguments, screen))
