"""condor_submit."""

import os
import re
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Final

import msgspec

from kettle.client.connections.condor_config import CondorConfig
from kettle.client.errors import ClientError
from kettle.client.jobs.submit_events import await_submit_events
from kettle.client.short_lived import ShortLivedClient
from kettle.command_server.needing import needs_a_terminal
from kettle_services.condor.arguments.grammar import Option, TypedOption, understood, whole_number
from kettle_services.condor.connections import interactive
from kettle_services.condor.connections.pool_client import client_of
from kettle_services.condor.errors import ToolError, WordsError
from kettle_services.condor.printing.submissions import Queued, said, warnings, written
from kettle_wire.jobs import JobId

if TYPE_CHECKING:
    from kettle.submit import Submission
    from kettle.submit.expected_jobs import ExpectedJobs

OPTIONS: Final = {
    "addr": Option(takes=1, also=("address",)),
    "allow-crlf-script": Option(),
    "append": Option(takes=1, also=("a",)),
    "batch-id": Option(takes=1),
    "batch-name": Option(takes=1),
    "capabilities": Option(letters=True),
    "debug": Option(letters=True),
    "disable": Option(),
    "dry-run": Option(takes=1, letters=True),
    "dump": Option(takes=1),
    "factory": Option(also=("generator", "g")),
    "file": Option(takes=1),
    "interactive": Option(also=("i",)),
    "maxjobs": Option(takes=1),
    "name": Option(takes=1, also=("n",)),
    "pool": Option(takes=1, also=("p",)),
    "queue": Option(takes=-1, also=("q",)),
    "remote": Option(takes=1, also=("r",)),
    "single-cluster": Option(),
    "spool": Option(also=("s",)),
    "table": Option(takes=1),
    "terse": Option(),
    "unused": Option(),
    "verbose": Option(),
}
HELP: Final = {
    "condor_submit": """\
usage: condor_submit [options] [NAME=VALUE ...] [FILE]

Send jobs to the pool: those of a submit description, from a file or from standard input.

  -terse                 print only the first and the last id of the jobs
  -verbose               print the ads of the jobs; so does the file -
  -append LINE           a line before the first queue statement; may be repeated
  -batch-name NAME, -batch-id ID   how condor_q calls the jobs together
  -queue ARGUMENTS       what is queued, for a description without a queue statement
  -maxjobs N             refuse a description of more jobs
  -single-cluster        refuse a description of more clusters: one begins where executable or universe change
  -table FILE            the same, with the items of a table
  -dry-run FILE          write the ads of the jobs into a file (-: print them) and send nothing; -dry-run:full every ad whole
  -dump FILE             the same, said in other words
  -factory               the jobs come into the queue one after the other, as with max_materialize
  -interactive           a shell in the place of the first job
  -capabilities          what the access point can do
  -disable               do not look whether the files are there that the jobs read
  -unused                no warnings about lines that mean nothing
  -name SCHEDD, -pool P  whose queue
  -spool                 send the files of the jobs to the access point, which need not see the disk here;
                         condor_transfer_data fetches what they leave there
  -remote SCHEDD         the same as -name SCHEDD -spool
  -debug, -allow-crlf-script   say nothing here
""",
}

_QUEUE: Final = re.compile(r"^[ \t]*queue\b(?![ \t]*=)", re.IGNORECASE | re.MULTILINE)
_GIVEN: Final = re.compile(r"(\+?[A-Za-z_][\w.]*)\s*=\s*(.*)", re.DOTALL)
_SAYS: Final[Mapping[str, tuple[str, object]]] = {
    "capabilities": ("capabilities", True),
    "disable": ("disable", True),
    "factory": ("factory", True),
    "single-cluster": ("single_cluster", True),
    "terse": ("how", "terse"),
    "unused": ("unused", False),
    "verbose": ("how", "verbose"),
}
"""What options say that take nothing: which field, and its value."""
_LINES: Final = {"append": "{}", "batch-id": "batch_id = {}", "batch-name": "batch_name = {}"}
"""Options that are lines of the description."""
_NAMES: Final = frozenset({"name", "pool"})
_IGNORED: Final = frozenset({"allow-crlf-script", "debug"})
_NOT_YET: Final = {
    "addr": "-addr is not carried out: daemons have no addresses here; say -name SCHEDD",
}
_FULL: Final = "full"
"""How a dry run is asked for every ad as a whole."""


class _Wanted(msgspec.Struct):
    """What was typed."""

    file: str = ""
    given: dict[str, str] = {}
    append: list[str] = []
    queue: str = ""
    how: str = ""
    """`terse` or `verbose`."""
    most: int = 0
    dry_run: str = ""
    full: bool = False
    """Every ad as a whole."""
    dump: bool = False
    """A dry run that is called storing."""
    disable: bool = False
    factory: bool = False
    unused: bool | None = None
    """Whether there are warnings about lines that mean nothing; None: as the knob says."""
    capabilities: bool = False
    interactive: bool = False
    name: str = ""
    pool: str = ""
    spool: bool = False
    single_cluster: bool = False


def run(_name: str, words: list[str]) -> int:
    """Submit, or show what would be."""
    from kettle.submit import NoJobError, SubmitError

    wanted = _wanted(words)
    if wanted.interactive:
        needs_a_terminal()
    knobs = CondorConfig(os.environ)
    if wanted.capabilities:
        return _capabilities(client_of(knobs, pool=wanted.pool, name=wanted.name))
    try:
        submissions = _prepared(wanted, lambda expected: _expect(expected, wanted, knobs))
    except NoJobError:
        if wanted.how != "terse":
            named = wanted.file if wanted.file not in {"", "-"} else "(stdin)"
            sys.stderr.write(f'\nWARNING: "{named}" has only empty "queue" commands -- no jobs queued\n')
        return 0
    except SubmitError as error:
        raise ToolError(f"\nERROR: {error}") from error
    try:
        return _submitted(submissions, wanted, knobs)
    finally:
        sys.stdout.flush()
        told = (
            knobs.flag("WARN_ON_UNUSED_SUBMIT_FILE_MACROS", default=True)
            if wanted.unused is None
            else wanted.unused
        )
        sys.stderr.writelines(warnings(submissions, unused=told))


def _submitted(submissions: "list[Submission]", wanted: _Wanted, knobs: CondorConfig) -> int:
    if wanted.dry_run:
        return _dry_run(submissions, wanted)
    client = client_of(knobs, pool=wanted.pool, name=wanted.name)
    queued: list[Queued] = []
    try:
        for submission in submissions:
            cluster = _sent(client, submission, spool=wanted.spool or client.pool.is_elsewhere)
            queued.append(Queued(submission, cluster))
    except (ClientError, ToolError) as error:
        if not queued:
            raise
        sys.stdout.writelines(said(queued, wanted.how))
        raise ToolError(_after(queued, len(submissions), error)) from error
    sys.stdout.writelines(said(queued, wanted.how))
    return _visited(queued[0].cluster, wanted) if wanted.interactive else 0


def _expect(expected: "list[ExpectedJobs]", wanted: _Wanted, knobs: CondorConfig) -> None:
    """What is too much is refused before it is made."""
    from kettle.submit.expected_jobs import are_many

    count = sum(each.jobs for each in expected)
    if wanted.most and count > wanted.most:
        raise ToolError(
            f"\nERROR: the description makes {count} jobs, more than the {wanted.most} of -maxjobs"
        )
    if are_many(expected) and not wanted.dry_run:
        late = [each._replace(late=each.late or wanted.factory) for each in expected]
        client_of(knobs, pool=wanted.pool, name=wanted.name).run(lambda pool: pool.require_room(late))


def _capabilities(client: ShortLivedClient) -> int:
    """What condor_submit says of an access point; all of them can do the same."""
    sys.stdout.write(f"Schedd {client.pool.schedd}\n Has Late Materialization enabled\n")
    return 0


def _visited(cluster: int, wanted: _Wanted) -> int:
    """A shell in the place of the job, which ends with it."""
    return interactive.visit(JobId(cluster, 0), pool=wanted.pool, name=wanted.name)


def _sent(client: ShortLivedClient, submission: "Submission", *, spool: bool) -> int:
    done = client.run(lambda pool: pool.submit(submission, spool=spool))
    if not spool:
        await_submit_events(submission, done.cluster, client.pool)
    else:
        _spool(client, Queued(submission, done.cluster))
    return done.cluster


def _spool(client: ShortLivedClient, queued: Queued) -> None:
    """Send the input files; when it returns, nothing here is needed any more."""
    ads, cluster = list(queued.ads()), queued.cluster
    try:
        client.run(lambda pool: pool.spools.send(ads))
    except ClientError as error:
        raise ToolError(
            f"\nERROR: {error}\nERROR: Failed to spool job files.\n"
            f"The jobs of cluster {cluster} stay held; take them out of the queue with: condor_rm {cluster}"
        ) from error


def _after(queued: list[Queued], count: int, error: Exception) -> str:
    """What was in the way, and what had been done by then."""
    said = str(error) if isinstance(error, ToolError) else f"\nERROR: {error}"
    clusters = " ".join(f"{each.cluster}" for each in queued)
    return (
        f"{said}\nOf the {count} clusters of the description {len(queued)} had been queued before that, and stay: {clusters}\n"
        f"Take what stays out of the queue with: condor_rm {clusters}"
    )


def _wanted(words: list[str]) -> _Wanted:
    wanted = _Wanted()
    for given in understood(words, OPTIONS):
        _take(wanted, given)
    if wanted.dry_run and not wanted.file:
        raise ToolError(
            f"\nERROR: No submit filename was provided, and '{wanted.dry_run}'\n"
            "  was given as the output filename for -dump or -dry-run. Was this intended?\n"
            "  Name the submit description as well; - stands for standard input."
        )
    if wanted.factory and wanted.interactive:
        raise ToolError("\nERROR: Interactive jobs cannot be materialized late")
    return wanted


def _take(wanted: _Wanted, given: TypedOption) -> None:
    value = given.values[0] if given.values else ""
    if given.name in _SAYS:
        field, said_by_it = _SAYS[given.name]
        setattr(wanted, field, said_by_it)
    elif given.name in _LINES:
        wanted.append.append(_LINES[given.name].format(value))
    elif given.name in _NAMES:
        setattr(wanted, given.name, value)
    else:
        _take_other(wanted, given, value)


def _take_other(wanted: _Wanted, given: TypedOption, value: str) -> None:
    match given.name:
        case "" | "file":
            _take_word(wanted, value, given.name)
        case "queue" | "table":
            items = " ".join(given.values)
            wanted.queue = f"queue {'from table ' if given.name == 'table' else ''}{items}"
        case "maxjobs":
            wanted.most = whole_number(given)
        case "dry-run" | "dump":
            if given.letters not in {"", _FULL}:
                raise WordsError(f"unknown option {given.letters} for -dry-run: there is -dry-run:{_FULL}")
            wanted.dry_run, wanted.full, wanted.dump = value, given.letters == _FULL, given.name == "dump"
        case "interactive":
            wanted.interactive = True
            wanted.append += interactive.LINES
        case "spool" | "remote":
            wanted.name, wanted.spool = value or wanted.name, True
        case ignored if ignored in _IGNORED:
            pass
        case refused:
            raise ToolError(f"\nERROR: {_NOT_YET[refused]}")


def _take_word(wanted: _Wanted, word: str, option: str) -> None:
    """An assignment, or the description's file."""
    if not option and (match := _GIVEN.fullmatch(word)):
        wanted.given[f"MY.{match[1][1:]}" if match[1].startswith("+") else match[1]] = match[2]
        return
    if wanted.file:
        raise WordsError(f"'{word}' is one submit description too many")
    wanted.file = word


def _prepared(wanted: _Wanted, expect: "Callable[[list[ExpectedJobs]], None]") -> "list[Submission]":
    from kettle.client.jobs.submission import as_factory, prepare_clusters

    if wanted.interactive and not wanted.file:
        text, source = interactive.DESCRIPTION, "-interactive"
    elif wanted.file in {"", "-"}:
        text, source = sys.stdin.buffer.read().decode("utf-8", "surrogateescape"), "standard input"
        wanted.how = wanted.how or ("verbose" if wanted.file else "")
    else:
        source = wanted.file
        try:
            text = Path(wanted.file).read_text(encoding="utf-8", errors="surrogateescape")
        except OSError as error:
            raise ToolError(
                f"\nERROR: Failed to open command file ({wanted.file}) ({error.strerror})"
            ) from error
    submissions = prepare_clusters(
        _with(text, wanted),
        given=wanted.given,
        source=source,
        submit_method=0,
        tolerant=True,
        single=wanted.single_cluster,
        skip_filechecks=wanted.disable,
        expect=expect,
    )
    return [as_factory(submission) for submission in submissions] if wanted.factory else submissions


def _with(text: str, wanted: _Wanted) -> str:
    """The description with the lines that were typed: they stand before the first queue statement."""
    found = _QUEUE.search(text)
    if wanted.queue:
        if found:
            raise ToolError("\nERROR: -queue conflicts with the queue statement of the description")
        text = f"{text}\n{wanted.queue}\n"
        found = _QUEUE.search(text)
    if not wanted.append:
        return text
    at = found.start() if found else len(text)
    lines = "".join(f"{line}\n" for line in wanted.append)
    return f"{text[:at]}{'' if text[:at].endswith(chr(10)) or not at else chr(10)}{lines}{text[at:]}"


def _dry_run(submissions: "list[Submission]", wanted: _Wanted) -> int:
    clusters = [Queued(submission, cluster) for cluster, submission in enumerate(submissions, start=1)]
    lines = said(clusters, wanted.how, "submitted" if wanted.dump else "dry-run")
    if wanted.dump:
        lines = ["Storing job ClassAd(s)", *lines[1:]]
    jobs = written(clusters, full=wanted.full)
    if wanted.dry_run == "-":
        first, _, *rest = lines if wanted.how != "terse" else ["", "", *lines]
        after = "." if not (wanted.dump or wanted.how) else ""
        sys.stdout.writelines([] if wanted.dump else [first])
        sys.stdout.writelines(f"\n{job}{after}" for job in jobs)
        sys.stdout.writelines([] if wanted.dump else [text or "\n" for text in rest])
        return 0
    try:
        Path(wanted.dry_run).write_text(
            "".join(f"\n{job}" for job in jobs), encoding="utf-8", errors="surrogateescape"
        )
    except OSError as error:
        raise ToolError(f"\nERROR: cannot write {wanted.dry_run}: {error.strerror}") from error
    sys.stdout.writelines(lines)
    return 0
