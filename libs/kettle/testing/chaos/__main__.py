"""`python -m kettle.testing.chaos`: one run, from the command line."""

import argparse
import asyncio
import logging
import os
import random
import shlex
import signal
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import msgspec
from rich.console import Console

from kettle.testing.chaos import report
from kettle.testing.chaos.harness import run
from kettle.testing.chaos.plan import WITH_IAM, Plan
from kettle.testing.chaos.schedule import KINDS, MEANING
from kettle.testing.chaos.screen import Screen

_MANUAL: Final = """\
A throw-away pool is started and given work without end.  Meanwhile services, NATS and PostgreSQL are killed, stopped,
cut off, and run out of disk, all by a schedule that follows from the seed alone.  Then the faults stop, and the run looks
whether the pool has kept what it promised: nothing acknowledged is lost, nothing is done twice, the log is clean, all is
idle again.  The exit status is 0 if so, 1 if not (logs and schedule are then kept, and the line to repeat it is printed).

examples:
  %(prog)s                                       a minute of everything, with a new seed
  %(prog)s --seconds 1800                        half an hour
  %(prog)s --seed 7 --faults kill,pause          two kinds of faults
  %(prog)s --faults 'cut:schedd>*,clock:startd'  one kind for some targets; * and ? as in a shell
  %(prog)s --daemons 'collector,negotiator,schedd,schedd#2,shadow,startd,accounting'
                                                 with a schedd that stands by
  %(prog)s --daemons ''                          without iam, as a personal pool is at first
  %(prog)s --seed 7 --keep /tmp/seen             keep the logs of a clean run too
  %(prog)s --json >run.json                      for a program

kinds of faults:
"""


def main(argv: Sequence[str] | None = None) -> int:
    parser = _parser()
    given = parser.parse_args(argv)
    seed = random.SystemRandom().randrange(1, 1_000_000) if given.seed == "random" else int(given.seed)
    plan = Plan(
        seed=seed,
        seconds=given.seconds,
        every=given.every,
        longest=given.longest,
        faults=_list(given.faults),
        jobs=given.jobs,
        nodes=given.nodes,
        cpus=given.cpus,
        bound=given.bound,
        daemons=_list(given.daemons),
    )
    replay = _again(plan)
    err = Console(stderr=True, color_system=None if _plain() else "auto")
    err.print(f"seed {seed}; again: {replay}", markup=False, highlight=False, soft_wrap=True)
    logging.getLogger("kettle").addHandler(logging.NullHandler())  # that connections break is no news here
    try:
        with Screen(err, plan) as screen:
            found = asyncio.run(_until_told(plan, screen, replay, given.keep))
    except (KeyboardInterrupt, asyncio.CancelledError):
        err.print("stopped; nothing was judged")
        return 130
    except ValueError as error:
        err.print(str(error), markup=False)
        return 2
    if given.json:
        sys.stdout.buffer.write(msgspec.json.format(msgspec.json.encode(found)) + b"\n")
    else:
        report.show(found, Console(highlight=False, width=None if sys.stdout.isatty() else 160))
    return 0 if found.clean else 1


async def _until_told(plan: Plan, screen: Screen, replay: str, keep: Path | None) -> report.Report:
    task = asyncio.ensure_future(run(plan, screen, replay=replay, keep=keep))
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, task.cancel)
    return await task


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m kettle.testing.chaos",
        description="Break a pool on purpose, and prove that it keeps its promises.",
        epilog=_MANUAL + "\n".join(f"  {kind:<10} {MEANING[kind]}" for kind in KINDS),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add = parser.add_argument
    add("--seconds", type=float, default=60.0, help="how long faults are made (default 60)")
    add(
        "--seed",
        default="random",
        help="the number that the schedule follows from (default: a new one, printed)",
    )
    add("--every", type=float, default=5.0, help="seconds between two faults, on average (default 5)")
    add("--longest", type=float, default=8.0, help="seconds that a fault may last (default 8; leases last 3)")
    add("--faults", default="", help="which faults: KIND or KIND:TARGET, with commas (default: all)")
    add("--jobs", type=int, default=0, help="submit no more jobs than this (default: go on)")
    add("--nodes", type=int, default=1, help="some of the jobs have up to so many nodes (default 1)")
    add("--cpus", type=int, default=8, help="slots of the pool (default 8)")
    add("--bound", type=float, default=90.0, help="seconds in which the pool must work again (default 90)")
    add(
        "--daemons",
        default=",".join(WITH_IAM),
        help="the pool's services (default: a personal pool with an iam)",
    )
    add("--keep", type=Path, help="directory for logs and schedule, also of a clean run")
    add("--json", action="store_true", help="print the result as JSON")
    return parser


def _again(plan: Plan) -> str:
    """The command that makes the same schedule."""
    words = ["python", "-m", "kettle.testing.chaos"]
    default = Plan(seed=0)
    for field in (
        "seed",
        "seconds",
        "every",
        "longest",
        "faults",
        "jobs",
        "nodes",
        "cpus",
        "bound",
        "daemons",
    ):
        value: Any = getattr(plan, field)
        if value != getattr(default, field):
            words += [f"--{field}", ",".join(value) if field in {"faults", "daemons"} else str(value)]
    return shlex.join(words)


def _list(text: str) -> tuple[str, ...]:
    return tuple(part.strip() for part in text.split(",") if part.strip())


def _plain() -> bool:
    return os.environ.get("KETTLE_COLOR") == "never" or "NO_COLOR" in os.environ


if __name__ == "__main__":
    sys.exit(main())
