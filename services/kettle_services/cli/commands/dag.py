"""`kettle dag`: DAG files checked and drawn before anything is submitted, and workflows that run."""

import argparse
import importlib
from typing import Final

from kettle_services.cli.options import json_option, pool_options
from kettle_services.cli.output.screen import Screen

HELP: Final = """\
Look at DAG files, before anything is submitted, and at workflows that run.  condor_submit_dag submits them.

examples:
  kettle dag check diamond.dag
  kettle dag graph diamond.dag > diamond.dot
  kettle dag show 17                17: the cluster of the DAG job
  kettle dag why 17 merge
  kettle dag rerun 17               what has failed, and what has not run
  kettle dag diff 17 31

kettle dag COMMAND --help explains each.
"""

_CHECK: Final = """\
All that is wrong with DAG files, with file and line, and what they amount to: how many nodes and edges, how many nodes
follow each other at most (height), how many may run at a time at most (width), and the longest chain.
Several files are one DAG, as for condor_submit_dag.  What is strange and can be carried out is a warning.

Exit status: 0 nothing is wrong; 1 something is; 2 a mistake in what was typed.

examples:
  kettle dag check diamond.dag
  kettle dag check --json one.dag two.dag
  kettle dag check --deep diamond.dag                     what its nodes would be refused for, too
  kettle dag check --partial diamond.dag.rescue001 diamond.dag
"""

_SHOW: Final = """\
How far a workflow is: its nodes by their states, its jobs, and what it ended with.  One that is over is read from the log.

examples:
  kettle dag show 17
  kettle dag show 17 --json        with the state of every node
"""

_WHY: Final = """\
Why a node of a workflow is where it is: which nodes it waits for, which limit is reached, and why its job waits.

examples:
  kettle dag why 17 merge
"""

_RERUN: Final = """\
Run a DAG again whose workflow is over: what has succeeded counts as done, and the rest runs.
The DAG files are read as they are now, and the new run has the options of the old one, as far as these are arguments of its
DAG job; what counts as done is in a file beside the DAG file, FILE.rerun001 and so on.

examples:
  kettle dag rerun 17                        what has failed, and what has not run
  kettle dag rerun --from merge 17           merge, and all that descends from it, too
  kettle dag rerun --only plot 17            this node and no other
  kettle dag rerun --dry-run 17              say what would run, and submit nothing
"""

_DIFF: Final = """\
Two runs of a DAG, node by node: those that came to another state or exit code, are in one of them only, or took a different
time: by a second at least, and by a tenth.

examples:
  kettle dag diff 17 31
"""

_HALT: Final = """\
Have a workflow begin nothing new: no job of a node is submitted and no PRE script runs until it is resumed.  When all that runs has
ended it ends, too, and writes a rescue file.  htcondor dag halt does the same.

examples:
  kettle dag halt 17 --reason 'the disk is full'
"""

_RESUME: Final = """\
Let a workflow go on that was halted and has not ended.

examples:
  kettle dag resume 17
"""

_GRAPH: Final = """\
A DAG as a picture: for Graphviz (dot), as svg, where the program dot is installed, or as JSON.
A node that has succeeded before is filled, a weak edge dashed; a splice is a frame, or with --fold one figure.

Exit status: 0 it is drawn; 1 the DAG has a fault, or there is no program dot; 2 a mistake in what was typed.

examples:
  kettle dag graph diamond.dag | dot -Tpng > diamond.png
  kettle dag graph --format svg --fold large.dag > large.svg
"""


_ID: Final = "the cluster of the DAG job, as condor_submit_dag says it"


def arguments(parser: argparse.ArgumentParser) -> None:
    """What the command takes."""
    commands = parser.add_subparsers(dest="what", metavar="COMMAND", required=True)

    def add(name: str, says: str, description: str) -> argparse.ArgumentParser:
        added = commands.add_parser(
            name, help=says, description=description, formatter_class=argparse.RawDescriptionHelpFormatter
        )
        added.add_argument("files", nargs="+", metavar="FILE", help="a DAG file; several are one DAG")
        added.add_argument(
            "--use-dag-dir", action="store_true", help="paths are relative to each file's directory"
        )
        added.add_argument("--partial", default="", metavar="FILE", help="a rescue or save file of this DAG")
        return added

    check = add("check", "all that is wrong with DAG files, and what they amount to", _CHECK)
    check.add_argument(
        "--deep", action="store_true", help="look at submit descriptions, scripts and DAGs within, too"
    )
    json_option(check)
    graph = add("graph", "a DAG as a picture", _GRAPH)
    graph.add_argument(
        "--format",
        choices=("dot", "svg", "json"),
        default="dot",
        metavar="FORM",
        help="dot, svg or json (default: dot)",
    )
    graph.add_argument("--fold", action="store_true", help="one figure for each splice")

    for name, says, description in (
        ("show", "how far a workflow is, and the states of its nodes", _SHOW),
        ("why", "why a node of a workflow is where it is", _WHY),
    ):
        parser_ = commands.add_parser(
            name, help=says, description=description, formatter_class=argparse.RawDescriptionHelpFormatter
        )
        parser_.add_argument(
            "workflow",
            type=int,
            metavar="ID",
            help=_ID,
        )
        if name == "why":
            parser_.add_argument("node", metavar="NODE", help="the name of a node")
        json_option(parser_)
        pool_options(parser_)

    again = commands.add_parser(
        "rerun",
        help="run a DAG again, without what is done",
        description=_RERUN,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    again.add_argument("workflow", type=int, metavar="ID", help=_ID)
    which = again.add_mutually_exclusive_group()
    which.add_argument(
        "--from",
        dest="after",
        action="append",
        default=[],
        metavar="NODE",
        help="this node runs again, and all that descends from it; may be repeated (default: only what has not succeeded)",
    )
    which.add_argument(
        "--only", action="append", default=[], metavar="NODE", help="no other node runs; may be repeated"
    )
    again.add_argument("--dry-run", action="store_true", help="say what would run, and submit nothing")
    json_option(again)
    pool_options(again)

    differ = commands.add_parser(
        "diff",
        help="two runs of a DAG, node by node",
        description=_DIFF,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    differ.add_argument("workflows", type=int, nargs=2, metavar="ID", help=_ID)
    json_option(differ)
    pool_options(differ)

    for name, says, description in (
        ("halt", "have a workflow begin nothing new", _HALT),
        ("resume", "let a halted workflow go on", _RESUME),
    ):
        control = commands.add_parser(
            name, help=says, description=description, formatter_class=argparse.RawDescriptionHelpFormatter
        )
        control.add_argument("workflow", type=int, metavar="ID", help="the cluster of the DAG job")
        if name == "halt":
            control.add_argument("--reason", default="", metavar="TEXT", help="is recorded, and shown")
        pool_options(control)


_MODULES: Final = {
    "check": ("checking", "run"),
    "graph": ("graphing", "run"),
    "show": ("running", "show"),
    "why": ("running", "why"),
    "rerun": ("rerunning", "run"),
    "diff": ("comparing", "run"),
    "halt": ("controlling", "halt"),
    "resume": ("controlling", "resume"),
}


def run(arguments: argparse.Namespace, screen: Screen) -> int:
    """Hand over to the module of the subcommand."""
    module, function = _MODULES[arguments.what]
    return int(
        getattr(importlib.import_module(f"kettle_services.cli.dag.{module}"), function)(arguments, screen)
    )
