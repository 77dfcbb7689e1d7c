"""condor_submit."""

import os
import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

import msgspec

from kettle.client.connections.condor_config import CondorConfig
from kettle.client.errors import ClientError
from kettle.client.short_lived import ShortLivedClient
from kettle_services.condor.arguments.grammar import Option, TypedOption, understood, whole_number
from kettle_services.condor.connections.pool_client import client_of
from kettle_services.condor.errors import ToolError, WordsError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from kettle.submit import Submission
    from kettle_wire.ads.types import Ad

OPTIONS: Final = {
    "append": Option(takes=1, also=("a",)),
    "batch-name": Option(takes=1),
    "debug": Option(),
    "disable": Option(),
    "dry-run": Option(takes=1),
    "file": Option(takes=1),
    "interactive": Option(),
    "maxjobs": Option(takes=1),
    "name": Option(takes=1),
    "no_warn_unused": Option(),
    "pool": Option(takes=1, also=("p",)),
    "queue": Option(takes=-1, also=("q",)),
    "remote": Option(takes=1),
    "single-cluster": Option(),
    "spool": Option(),
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
  -batch-name NAME       how condor_q calls the jobs together
  -queue ARGUMENTS       what is queued, for a description without a queue statement
  -maxjobs N             refuse a description of more jobs
  -single-cluster        refuse a description of more clusters: one begins where executable or universe change
  -dry-run FILE          write the ads of the jobs into a file (-: print them) and send nothing
  -name SCHEDD, -pool P  whose queue
  -spool                 send the files of the jobs to the access point, which need not see the disk here;
                         condor_transfer_data fetches what they leave there
  -remote SCHEDD         the same as -name SCHEDD -spool
  -disable, -unused, -no_warn_unused, -debug   say nothing here
""",
}

_QUEUE: Final = re.compile(r"^[ \t]*queue\b(?![ \t]*=)", re.IGNORECASE | re.MULTILINE)
_GIVEN: Final = re.compile(r"(\+?[A-Za-z_][\w.]*)\s*=\s*(.*)", re.DOTALL)
_IGNORED: Final = frozenset({"debug", "disable", "no_warn_unused", "unused"})
_NOT_YET: Final = {
    "interactive": "-interactive is not carried out: start the job, then condor_ssh_to_job",
}


class _Queued(NamedTuple):
    """A cluster that is in the queue, or would be."""

    submission: "Submission"
    cluster: int

    def ads(self) -> "Iterator[Ad]":
        """Of its jobs, one after the other."""
        return (self.submission.queued(proc, self.cluster) for proc in range(self.submission.count))


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
    name: str = ""
    pool: str = ""
    spool: bool = False
    single_cluster: bool = False


def run(_name: str, words: list[str]) -> int:
    """Submit, or show what would be."""
    from kettle.submit import SubmitError

    wanted = _wanted(words)
    knobs = CondorConfig(os.environ)
    try:
        submissions = _prepared(wanted)
    except SubmitError as error:
        raise ToolError(f"\nERROR: {error}") from error
    sys.stderr.writelines(f"WARNING: {warning}\n" for each in submissions for warning in each.warnings)
    count = sum(submission.count for submission in submissions)
    if wanted.most and count > wanted.most:
        raise ToolError(
            f"\nERROR: the description makes {count} jobs, more than the {wanted.most} of -maxjobs"
        )
    if wanted.dry_run:
        return _dry_run(submissions, wanted)
    client = client_of(knobs, pool=wanted.pool, name=wanted.name)
    queued: list[_Queued] = []
    try:
        for submission in submissions:
            cluster = _sent(client, submission, spool=wanted.spool)
            queued.append(_Queued(submission, cluster))
    except (ClientError, ToolError) as error:
        if not queued:
            raise
        sys.stdout.writelines(_said(queued, wanted.how))
        raise ToolError(_after(queued, len(submissions), error)) from error
    sys.stdout.writelines(_said(queued, wanted.how))
    return 0


def _sent(client: ShortLivedClient, submission: "Submission", *, spool: bool) -> int:
    done = client.run(lambda pool: pool.submit(submission, spool=spool))
    if spool:
        _spool(client, _Queued(submission, done.cluster))
    return done.cluster


def _spool(client: ShortLivedClient, queued: _Queued) -> None:
    """Send the input files; when it returns, nothing here is needed any more."""
    ads, cluster = list(queued.ads()), queued.cluster
    try:
        client.run(lambda pool: pool.spools.send(ads))
    except ClientError as error:
        raise ToolError(
            f"\nERROR: {error}\nERROR: Failed to spool job files.\n"
            f"The jobs of cluster {cluster} stay held; take them out of the queue with: condor_rm {cluster}"
        ) from error


def _after(queued: list[_Queued], count: int, error: Exception) -> str:
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
    return wanted


def _take(wanted: _Wanted, given: TypedOption) -> None:
    value = given.values[0] if given.values else ""
    match given.name:
        case "" | "file":
            _take_word(wanted, value, given.name)
        case "append" | "batch-name" as name:
            wanted.append.append(value if name == "append" else f"batch_name = {value}")
        case "queue":
            wanted.queue = "queue " + " ".join(given.values)
        case "terse" | "verbose":
            wanted.how = given.name
        case "maxjobs":
            wanted.most = whole_number(given)
        case "dry-run" | "name" | "pool" as name:
            setattr(wanted, name.replace("-", "_"), value)
        case "single-cluster":
            wanted.single_cluster = True
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


def _prepared(wanted: _Wanted) -> "list[Submission]":
    from kettle.client.jobs.submission import prepare, prepare_clusters

    if wanted.file in {"", "-"}:
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
    text = _with(text, wanted)
    if wanted.single_cluster:
        return [prepare(text, given=wanted.given, source=source, submit_method=0, tolerant=True)]
    return prepare_clusters(text, given=wanted.given, source=source, submit_method=0, tolerant=True)


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


def _said(clusters: list[_Queued], how: str, done: str = "submitted") -> list[str]:
    if how == "terse":
        return [f"{each.cluster}.0 - {each.cluster}.{each.submission.count - 1}\n" for each in clusters]
    if how == "verbose":
        return _ads(clusters)
    first = "Submitting job(s)" if done == "submitted" else "Dry-Run job(s)"
    dots = "." * sum(each.submission.count for each in clusters)
    last = [f"{each.submission.count} job(s) {done} to cluster {each.cluster}.\n" for each in clusters]
    return [first, dots, "\n", *last]


def _ads(clusters: list[_Queued]) -> list[str]:
    from kettle.classad import ClassAd, write_long

    return [
        text
        for each in clusters
        for proc, ad in enumerate(each.ads())
        for text in (f"\n** Proc {each.cluster}.{proc}:\n", write_long(ClassAd.from_wire(ad)))
    ]


def _dry_run(submissions: "list[Submission]", wanted: _Wanted) -> int:
    from kettle.classad import ClassAd, write_long

    clusters = [_Queued(submission, cluster) for cluster, submission in enumerate(submissions, start=1)]
    text = "".join(write_long(ClassAd.from_wire(ad)) + "\n" for each in clusters for ad in each.ads())
    if wanted.dry_run == "-":
        sys.stdout.write(text)
        return 0
    try:
        Path(wanted.dry_run).write_text(text, encoding="utf-8", errors="surrogateescape")
    except OSError as error:
        raise ToolError(f"\nERROR: cannot write {wanted.dry_run}: {error.strerror}") from error
    sys.stdout.writelines(_said(clusters, wanted.how, "dry-run"))
    return 0
