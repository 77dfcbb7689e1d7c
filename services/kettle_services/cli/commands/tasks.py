"""`kettle tasks`: task queues."""

import argparse
import importlib
from collections.abc import Callable
from typing import Final

from kettle_services.cli.options import at_least, json_option, pool_options, seconds
from kettle_services.cli.output.screen import Screen
from kettle_services.cli.times import span_argument

HELP: Final = """\
Many small commands that a few jobs work through.  A job of its own for each would cost milliseconds of the pool; in a task queue a
command costs what its process costs, and a call of a function or a line for a program less than a tenth of a millisecond.  Each task
has its exit, usage, reason and some output on record, exactly once, whatever is killed meanwhile.

examples:
  kettle tasks submit fits.txt --workers 4      a command on each line; four jobs work through them
  kettle tasks list                             how far yours are
  kettle tasks show fits                        one of them, with its workers
  kettle tasks why fits.17                      why task 17 is as it is
  kettle tasks results fits --failed
  kettle tasks wait fits
  kettle tasks cancel fits

kettle tasks COMMAND --help explains each.
"""
_SUBMIT: Final = """\
Record the tasks of a file and submit jobs that work through them.  Each line is a command for the shell; empty lines, and those that
begin with #, are none.  With --json-lines each line is a JSON text, or a list of words.  With --program the lines are written to that
program, which lives on and answers each with one line.

The workers are ordinary jobs: kettle q, kettle why and fair share know them as any others.  One that is lost loses no task.

examples:
  kettle tasks submit fits.txt --workers 4 --as fits
  kettle tasks submit fits.txt --workers 10 --cpus 4 --retries 2 --time-limit 10m
  generate | kettle tasks submit - --workers 2 --wait
  kettle tasks submit points.txt --program './model --serve'
  kettle tasks submit fits.txt --again fits     those that did not end well in the queue fits, with numbers from 1
  kettle tasks submit fits.txt --append 'container_image = fits.sif'
"""
_ADD: Final = """\
Give more tasks to a queue that was begun with --open.

examples:
  kettle tasks add fits more.txt
  kettle tasks add fits last.txt --close
"""
_CLOSE: Final = """\
Say that no more tasks come: the queue is over when all of its tasks have a result.

examples:
  kettle tasks close fits
"""
_WORKERS: Final = """\
Have more jobs work for a queue.

examples:
  kettle tasks workers fits 10
"""
_LIST: Final = """\
Your task queues.

examples:
  kettle tasks list
  kettle tasks list --ended             also those that are over
  kettle tasks list --everybody         of all people, for administrators
"""
_SHOW: Final = """\
A queue with its workers, or one task of it with its result.

examples:
  kettle tasks show fits
  kettle tasks show fits.17
"""
_RESULTS: Final = """\
The tasks that have a result, one line each: number, exit code (a signal below zero), seconds of wall time and of processors, worker,
and the reason or the first line of what it printed.

examples:
  kettle tasks results fits
  kettle tasks results fits --failed
  kettle tasks results fits --outputs           only what the tasks printed
  kettle tasks results fits --json --follow     as they come, for programs
"""
_WAIT: Final = """\
Wait until a queue is over.  The exit status is 0 if all of its tasks ended well, else 1.

examples:
  kettle tasks wait fits
  kettle tasks wait fits --for 600
"""
_WHY: Final = """\
Why a queue or a task is as it is, and why the jobs wait that work for it.

examples:
  kettle tasks why fits
  kettle tasks why fits.17
"""
_CANCEL: Final = """\
End queues: what waits is not run, what runs is ended, and the jobs that work for them are removed.

examples:
  kettle tasks cancel fits
"""
_QUEUE: Final = "its name or id, as kettle tasks list shows it"
_MOST: Final = 10_000

Add = Callable[[str, str, str], argparse.ArgumentParser]


def arguments(parser: argparse.ArgumentParser) -> None:
    """What the command takes."""
    commands = parser.add_subparsers(dest="what", metavar="COMMAND", required=True)

    def add(name: str, says: str, description: str) -> argparse.ArgumentParser:
        made = commands.add_parser(
            name, help=says, description=description, formatter_class=argparse.RawDescriptionHelpFormatter
        )
        json_option(made)
        pool_options(made)
        return made

    _add_submit(add("submit", "begin a queue", _SUBMIT))
    _add_more(add)
    _add_looks(add)


def _add_submit(submit: argparse.ArgumentParser) -> None:
    _file(submit)
    submit.add_argument("--as", dest="queue_name", default="", metavar="NAME", help="how it is called")
    submit.add_argument(
        "--workers",
        type=at_least(0, _MOST),
        default=1,
        metavar="N",
        help="jobs that work for it (default: 1)",
    )
    _jobs(submit)
    submit.add_argument(
        "--again",
        default="",
        metavar="QUEUE",
        help="only those tasks of the file that did not end well in this queue, which was begun with it and is over",
    )
    submit.add_argument(
        "--program", default="", metavar="COMMAND", help="lives on, and answers each line with one"
    )
    submit.add_argument(
        "--retries",
        type=int,
        default=0,
        metavar="N",
        help="run a task that failed again, so often (default: 0)",
    )
    submit.add_argument(
        "--time-limit",
        type=span_argument,
        default=0.0,
        metavar="TIME",
        help="kill a task after so long, as 10m",
    )
    submit.add_argument(
        "--output",
        type=int,
        default=1024,
        metavar="BYTES",
        help="of what each prints are kept (default: 1024)",
    )
    submit.add_argument("--open", action="store_true", help="more tasks will be added")
    submit.add_argument("--wait", action="store_true", help="until it is over")


def _file(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("file", metavar="FILE", help="the tasks, one a line; - for standard input")
    parser.add_argument(
        "--json-lines", action="store_true", help="each line is a JSON text, or a list of words"
    )


def _jobs(parser: argparse.ArgumentParser) -> None:
    for name, default, says in (
        ("cpus", 1, "CPUs of each worker, and as many tasks run in it at once (default: 1)"),
        ("memory", 512, "of each worker (default: 512)"),
        ("disk", 1024, "of each worker (default: 1024)"),
    ):
        unit = "N" if name == "cpus" else "MIB"
        parser.add_argument(f"--{name}", type=at_least(1), default=default, metavar=unit, help=says)
    parser.add_argument(
        "--idle",
        type=span_argument,
        default=60.0,
        metavar="TIME",
        help="a worker without tasks ends after so long (default: 1m)",
    )
    parser.add_argument(
        "--append",
        action="append",
        default=[],
        metavar="LINE",
        help="a line of the workers' submit description; may be repeated",
    )


def _add_more(add: Add) -> None:
    more = add("add", "give it more tasks", _ADD)
    more.add_argument("queue", metavar="QUEUE", help=_QUEUE)
    _file(more)
    more.add_argument("--close", action="store_true", help="these are the last ones")
    close = add("close", "say that no more come", _CLOSE)
    close.add_argument("queue", metavar="QUEUE", help=_QUEUE)
    workers = add("workers", "have more jobs work for it", _WORKERS)
    workers.add_argument("queue", metavar="QUEUE", help=_QUEUE)
    workers.add_argument("workers", type=at_least(1, _MOST), metavar="N", help="how many more")
    _jobs(workers)


def _add_looks(add: Add) -> None:
    listed = add("list", "your queues", _LIST)
    listed.add_argument("--ended", action="store_true", help="also those that are over")
    listed.add_argument("--everybody", action="store_true", help="of all people, for administrators")
    for name, says, text in (("show", "a queue, or a task of it", _SHOW), ("why", "why it is so", _WHY)):
        add(name, says, text).add_argument("queue", metavar="QUEUE[.TASK]", help=_QUEUE)
    results = add("results", "what became of its tasks", _RESULTS)
    results.add_argument("queue", metavar="QUEUE", help=_QUEUE)
    results.add_argument("--failed", action="store_true", help="only of those that failed")
    results.add_argument("--outputs", action="store_true", help="only what they printed")
    results.add_argument("--follow", action="store_true", help="also those that are still to come")
    wait = add("wait", "until it is over", _WAIT)
    wait.add_argument("queue", metavar="QUEUE", help=_QUEUE)
    wait.add_argument("--for", dest="limit", type=seconds, metavar="SECONDS", help="give up after so long")
    cancel = add("cancel", "end it", _CANCEL)
    cancel.add_argument("queues", nargs="+", metavar="QUEUE", help=_QUEUE)
    cancel.add_argument("--reason", default="", metavar="TEXT", help="is recorded, and shown")


_MODULES: Final = {
    "submit": ("submitting", "submit"),
    "add": ("submitting", "add"),
    "close": ("submitting", "close"),
    "workers": ("submitting", "workers"),
    "list": ("showing", "queues"),
    "show": ("showing", "show"),
    "wait": ("showing", "wait"),
    "why": ("showing", "why"),
    "cancel": ("showing", "cancel"),
    "results": ("results", "results"),
}


def run(arguments: argparse.Namespace, screen: Screen) -> int:
    """Hand over to the module of the subcommand."""
    module, function = _MODULES[arguments.what]
    found = importlib.import_module(f"kettle_services.cli.task_queues.{module}")
    return int(getattr(found, function)(arguments, screen))
