"""`kettle simulate`: jobs on machines that nobody has, on a clock that runs as fast as it can."""

import argparse
import importlib
from pathlib import Path
from typing import Final

from kettle_services.cli.options import json_option, reach_options, seconds
from kettle_services.cli.output.screen import Screen
from kettle_services.cli.times import FORMS, TimeParser, moment_argument

HELP: Final = """\
Simulate a pool: how long jobs wait and how busy machines are, on a platform and with a workload that a file describes.
No pool is needed, and none is touched.  kettle what-if plays the past of a real pool again with other rules.

examples:
  kettle simulate run cluster.toml
  kettle simulate run cluster.toml --seed 1 --seed 2 --seed 3
  kettle simulate check cluster.toml
  kettle simulate compare cluster.toml larger.toml --seeds 10
  kettle simulate plot jobs.parquet drawings

kettle simulate COMMAND --help explains each, and the file.
"""

_FILE: Final = """\
FILE is TOML (or JSON, named *.json):

  seed = 1
  model = "wrench"               # or kettle: see below
  until = "8 h"                  # it ends then, whatever still waits or runs; without it, with the last job

  [[platform]]                   # equal hosts, one table for each kind
  hosts = 25
  cores = 4
  memory = "16 GiB"
  price = 0.4                    # of each for an hour, whether it is used or not
  speed = 1.5                    # durations are those on a core of speed 1
  link = "1 Gbit/s"              # of each host
  latency = "1 ms"               # control messages take that time, unless [queue] messages = false

  [[platform]]                   # two racks of 20 hosts: levels from the centre outwards
  levels = [{ width = 2, link = "10 Gbit/s" }, { width = 20, link = "1 Gbit/s" }]
  cores = 8

  [[platform]]                   # hosts that are not there all the time
  hosts = 10
  joins = "2 h"                  # and boot = "2 min" on top of it, and leaves = "10 h" for good
  mtbf = "10 d"                  # fail so often, or as outages = "outages.csv" says (host, from, until in seconds)
  repair = "4 h"
  notice = "2 min"               # told so long before they go, they take no more jobs (model kettle)

  [[workload]]
  jobs = 10000
  every = "2 s"
  arrivals = "poisson"           # or regular, or daily: more by day (peak = "14 h", swing = 0.8)
  duration = { kind = "lognormal", median = 600, sigma = 1 }
  reads = "2 GB"                 # over the network before the work, and writes after it
  user = "alice"

  [[workload]]
  supercomputer = 128            # of up to so many nodes, with run times as Lublin and Feitelson found them
  jobs = 1000
  every = "10 min"

  [[workload]]
  swf = "trace.swf"              # Standard Workload Format, beside the file

  [[workload]]
  workflow = "blast.json"        # WfFormat 1.4 to 1.6: jobs that wait for others, with their recorded times
  times = 20                     # submitted so often
  every = "5 min"

  [[workload]]
  dag = "flow.dag"               # a DAG file; its nodes take as long as duration says
  duration = "10 min"
  after = "6 h"                  # all of it, or of any other workload, comes so much later

  [[workload]]
  submit = "sweep.sub"           # a submit file; its jobs take as long as duration says
  duration = "10 min"

  [[workload]]
  prominence = "flow.json"       # a document of a job or a workflow; without a duration, jobs take their walltimes

  [delays]
  negotiator = "10 s"            # once a cycle
  before = "50 ms"               # for each job that a cycle places, one after another
  after = "50 ms"                # for each job that has ended, one after another

  [queue]
  batch = true                   # a batch service with a queue of its own
  discipline = "easy"            # or fcfs, conservative

With model = "kettle", Kettle's own queue, negotiator and accountant decide.  In the place of [delays] and [queue] there can be

  [negotiator]                   # settings that decide who gets what, as in kettle.toml
  groups = { physics = { quota = 40 } }
  [factors]                      # priority factors
  alice = 10
  [kettle]
  claim_worklife = "20 min"
  step = "1 s"                   # between two cycles at least
  latency = "50 ms"              # from when a match is possible until the slot is claimed
  start = "100 ms"               # from then until the job runs
  max_concurrent_uploads = 100   # jobs that move what they read at once, and max_concurrent_downloads what they write
  [machines]                     # what all of them say: start, rank, user_preemption
  user_preemption = true
  [[pool]]                       # machines that are made when jobs wait, by the planner of the scaler; all keys of its files
  name = "cloud"
  max = 20
  idle = "10m"
  [[pool.offer]]
  name = "large"
  provider = "any"
  cpus = 8
  memory = "16 GB"
  boot = "90s"
  price = "0.4 EUR"
  [spot]                         # these machines are taken back, on average after so long, and told before
  mtbf = "6 h"
  notice = "2 min"

routes = "site.routes", above the tables, is a compute entrypoint's file; jobs with routed = true come by it,
and users can be in groups (user = "physics.alice"), and jobs can have
requirements, rank and concurrency_limits, as in submit files.

Distributions: constant (value), uniform (low, high), exponential (mean), lognormal (median, sigma), pareto (least, shape).
"""

_RUN: Final = f"""\
Play the workload of a file to its end, and say what it came to: waits, slowdown and utilisation, for each user and for all.
The same file and seed give the same result on every machine; several seeds give the spread.

{_FILE}
examples:
  kettle simulate run cluster.toml
  kettle simulate run cluster.toml --seed 1 --seed 2 --seed 3
  kettle simulate run cluster.toml --jobs jobs.parquet
  kettle simulate run cluster.toml --events events && kettle log import events
  kettle simulate run cluster.toml --svg drawings
  kettle simulate run cluster.toml --pace 600
  kettle simulate run cluster.toml --json | jq .runs[0].all.wait_mean

With --from log it begins with a recorded period of the pool, its queue, machines and priorities, and FILE is what is changed of it, as
kettle what-if --help says: the answer compares what was recorded, the replay without the change, and the one with it.

  kettle simulate run more-for-physics.toml --from log --since 7d
"""

_CHECK: Final = f"""\
All that can be told of a file without running it: what the platform has, what the workload asks for, and what cannot be.

Exit status: 0 it can be run; 1 it cannot; 2 a mistake in what was typed.

{_FILE}
example:
  kettle simulate check cluster.toml
"""


_COMPARE: Final = f"""\
Play several files with the same seeds, and say what differs from the first: by how much, and whether that is more than chance.
Of each seed the difference is taken, and of these the mean, and how far off it can be at 95% of confidence (Student's t).

{_FILE}
examples:
  kettle simulate compare cluster.toml larger.toml
  kettle simulate compare cluster.toml larger.toml faster.toml --seeds 30
  kettle simulate compare cluster.toml fairer.toml --user bob
"""


_PLOT: Final = """\
Draw a run: who ran where and when, cores in use, shares of users, and waits, as SVG.
FILE is a table of jobs that kettle simulate run --jobs has written, or the file of a simulation, which is played for it.

examples:
  kettle simulate plot jobs.csv drawings --cores 400
  kettle simulate plot cluster.toml drawings --seed 3
  kettle simulate plot jobs.csv drawings --png
"""


_CALIBRATE: Final = """\
Fit the delays of a simulation to what a real pool has recorded: how long it takes to claim a slot once a match is possible,
and how much longer a job occupies a slot than its program runs.  The end of the period is held out: it is played with what
the rest of it says, and how wrong that is is told.

The log is read as by kettle what-if, and nothing is changed anywhere.

examples:
  kettle simulate calibrate --since 7d
  kettle simulate calibrate --since '2026-11-20 08:00' --until '2026-11-20 20:00' --hold-out 0.5
  kettle simulate calibrate --since 1d --json | jq '{latency, start}'
"""


def arguments(parser: argparse.ArgumentParser) -> None:
    """What the command takes."""
    commands = parser.add_subparsers(dest="what", metavar="COMMAND", required=True, parser_class=TimeParser)
    form = argparse.RawDescriptionHelpFormatter
    run_it = commands.add_parser(
        "run", help="play a workload on a platform", description=_RUN, formatter_class=form
    )
    check = commands.add_parser(
        "check", help="say what a file describes", description=_CHECK, formatter_class=form
    )
    compare = commands.add_parser(
        "compare", help="say what makes a difference", description=_COMPARE, formatter_class=form
    )
    compare.add_argument("files", type=Path, nargs="+", metavar="FILE", help="two at least")
    compare.add_argument(
        "--seeds", type=int, default=10, metavar="N", help="seeds from 1 to N, each (default: 10)"
    )
    compare.add_argument(
        "--user", default="", metavar="NAME", help="compare the jobs of one user (default: of all)"
    )
    _calibrate_arguments(
        commands.add_parser(
            "calibrate",
            help="fit delays to a recorded period",
            description=_CALIBRATE,
            formatter_class=form,
        )
    )
    plot = commands.add_parser("plot", help="draw a run", description=_PLOT, formatter_class=form)
    plot.add_argument("file", type=Path, metavar="FILE", help="a table of jobs, or platform and workload")
    plot.add_argument("directory", type=Path, metavar="DIRECTORY", help="where the drawings go")
    plot.add_argument(
        "--cores",
        type=int,
        metavar="N",
        help="of the pool, where a table is drawn (default: as many as were ever used at the same time)",
    )
    plot.add_argument("--seed", type=int, metavar="N", help="in the place of the file's")
    for parser_of in (run_it, plot):
        parser_of.add_argument(
            "--png", action="store_true", help="each drawing as PNG, too (extra kettle[png])"
        )
    for parser_of in (run_it, check):
        parser_of.add_argument("file", type=Path, metavar="FILE", help="platform and workload")
    for parser_of in (run_it, check, compare, plot):
        parser_of.add_argument(
            "--skip-bad", action="store_true", help="leave out lines of traces that are no jobs"
        )
        json_option(parser_of)
    run_it.add_argument(
        "--seed",
        type=int,
        action="append",
        metavar="N",
        help="in the place of the file's; may be given again",
    )
    _from_arguments(run_it)
    run_it.add_argument(
        "--events",
        type=Path,
        metavar="DIRECTORY",
        help="write what a pool would have recorded, as an archive of its log (model kettle)",
    )
    run_it.add_argument(
        "--pace",
        type=float,
        metavar="FACTOR",
        help="no faster than so many times as fast as a clock, to watch it (model kettle)",
    )
    run_it.add_argument(
        "--progress",
        action="store_true",
        help="say on standard error how far it is, in lines of JSON, for programs",
    )
    run_it.add_argument(
        "--jobs", type=Path, metavar="TABLE", help="write a row for each job: *.csv or *.parquet"
    )
    run_it.add_argument(
        "--svg",
        type=Path,
        metavar="DIRECTORY",
        help="draw gantt.svg, cores.svg (in use over time), shares.svg (of users) and waits.svg there",
    )


def _from_arguments(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("from a recorded period")
    group.add_argument(
        "--from",
        dest="origin",
        choices=("log",),
        help="begin with a period of the pool's log; FILE is what is changed of it",
    )
    group.add_argument("--since", type=moment_argument, metavar="TIME", help=f"when it begins, {FORMS}")
    group.add_argument("--until", type=moment_argument, metavar="TIME", help="when it ends (default: now)")
    group.add_argument(
        "--settings",
        type=Path,
        metavar="FILE",
        help="the pool's settings then (default: its kettle.toml, as it is now)",
    )
    group.add_argument(
        "--step",
        type=seconds,
        metavar="SECONDS",
        help="between two negotiation cycles at least (default: a 5000th of the period, 0.1 or more)",
    )
    reach_options(parser)


def _calibrate_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--since",
        type=moment_argument,
        required=True,
        metavar="TIME",
        help=f"when the period begins, {FORMS}",
    )
    parser.add_argument("--until", type=moment_argument, metavar="TIME", help="when it ends (default: now)")
    parser.add_argument(
        "--hold-out",
        type=float,
        default=0.25,
        metavar="PART",
        help="the part of it, at its end, on which the fit is tried (default: 0.25)",
    )
    parser.add_argument(
        "--settings",
        type=Path,
        metavar="FILE",
        help="the pool's settings then (default: its kettle.toml, as it is now)",
    )
    json_option(parser)
    reach_options(parser)


_MODULES: Final = {
    "run": "running", "check": "checking", "compare": "comparing", "calibrate": "calibrating", "plot": "plotting",
}  # fmt: skip


def run(arguments: argparse.Namespace, screen: Screen) -> int:
    """Hand over to the module of the subcommand."""
    name = "replaying" if getattr(arguments, "origin", None) else _MODULES[arguments.what]
    module = importlib.import_module(f"kettle_services.cli.simulation.{name}")
    return int(module.run(arguments, screen))
