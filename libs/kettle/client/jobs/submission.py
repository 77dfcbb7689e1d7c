"""From a person's description to what is sent: reading the file, the clock and the machine around it."""

import os
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from kettle.client.errors import ClientError

if TYPE_CHECKING:
    from kettle.submit import Description, Site, Submission
    from kettle.submit.expected_jobs import ExpectedJobs
    from kettle.submit.queue_statement import Iteration


def prepare(
    description: str | Path,
    *,
    given: Mapping[str, str] | None = None,
    cwd: Path | None = None,
    environ: Mapping[str, str] | None = None,
    source: str | None = None,
    submit_method: int = 2,
    tolerant: bool = False,
    iteration: "Iteration | None" = None,
) -> "Submission":
    """
    The jobs of a description, a text or the path of a file, that makes one cluster; nothing is sent.

    It reads files, so a program with an event loop calls it in a thread.  `iteration` stands for what the
    description's queue statements say, for a program that has the items itself.  `tolerant`: see `kettle.submit.parse`.

    Raises:
        SubmitError: the description is refused, or makes several clusters.
        ClientError: the file cannot be read.
    """
    from kettle.submit import expand

    read, site = _read(description, given, cwd, environ, source, submit_method, tolerant=tolerant)
    if iteration is not None:
        queues = tuple(msgspec.structs.replace(queue, iteration=iteration) for queue in read.queues)
        read = msgspec.structs.replace(read, queues=queues)
    return expand(read, site)


def prepare_alike(
    text: str,
    given: Sequence[Mapping[str, str]],
    *,
    cwd: Path,
    environ: Mapping[str, str],
    source: str,
    submit_method: int,
) -> "list[Submission]":
    """
    What `prepare` makes of a description with each of several sets of assignments, in less time if they are alike.

    It is read as HTCondor's are: a name that nothing uses is no error.

    Raises SubmitError: one of them is refused, and it is not said which.
    """
    from kettle.submit import expand
    from kettle.submit.alike import expand_alike, is_shared

    read, site = _read(text, given[0], cwd, environ, source, submit_method, tolerant=True)
    if len(given) == 1:
        return [expand(read, site)]
    if is_shared(read, given):
        return expand_alike(read, site, given)
    others = (_read(text, each, cwd, environ, source, submit_method, tolerant=True) for each in given[1:])
    return [expand(read, site), *(expand(other, there) for other, there in others)]


def prepare_clusters(
    description: str | Path,
    *,
    given: Mapping[str, str] | None = None,
    cwd: Path | None = None,
    environ: Mapping[str, str] | None = None,
    source: str | None = None,
    submit_method: int = 2,
    tolerant: bool = False,
    single: bool = False,
    skip_filechecks: bool = False,
    expect: "Callable[[list[ExpectedJobs]], None] | None" = None,
) -> "list[Submission]":
    """
    Prepare a description that may make several clusters: returns a submission for each, in order.

    The whole description is checked before any part can be sent.  `single`: more than one cluster is refused.
    `skip_filechecks`: it is not looked at whether the files are there that the jobs read and write.
    `expect` is told how many jobs there will be before they are made, and may raise what it likes.

    Raises:
        SubmitError: the description is refused.
        ClientError: the file cannot be read.
    """
    from kettle.submit import expand, expand_clusters

    read, site = _read(description, given, cwd, environ, source, submit_method, tolerant=tolerant)
    if expect is not None:
        from kettle.submit.expected_jobs import expected_jobs

        expect(expected_jobs(read))
    if skip_filechecks:
        site = msgspec.structs.replace(site, skip_filechecks=True)
    return [expand(read, site)] if single else expand_clusters(read, site)


def as_factory(submission: "Submission") -> "Submission":
    """Jobs that come into the queue one after the other, and no faster than they say."""
    if "JobMaterializeLimit" in submission.ad or "JobMaterializeMaxIdle" in submission.ad:
        return submission
    limit: dict[str, int] = {"JobMaterializeLimit": submission.count}
    return msgspec.structs.replace(submission, ad={**submission.ad, **limit})


def _read(
    description: str | Path,
    given: Mapping[str, str] | None,
    cwd: Path | None,
    environ: Mapping[str, str] | None,
    source: str | None,
    submit_method: int,
    *,
    tolerant: bool,
) -> "tuple[Description, Site]":
    from kettle.submit import Site, parse

    cwd = Path.cwd() if cwd is None else cwd
    environ = os.environ if environ is None else environ
    if isinstance(description, Path):
        source = source or str(description)
        try:
            text = (cwd / description).read_text(encoding="utf-8", errors="surrogateescape")
        except OSError as error:
            raise ClientError(f"cannot read the submit file {description}: {error.strerror}") from error
    else:
        text, source = description, source or "description"
    from kettle.client.connections.condor_config import CondorConfig

    skip = CondorConfig(environ).flag("SUBMIT_SKIP_FILECHECKS", default=False)
    site = msgspec.structs.replace(Site.here(submit_method=submit_method), skip_filechecks=skip)
    read = parse(
        text,
        source=source,
        cwd=cwd,
        environ=environ,
        given=given,
        automatic=_automatic(source, time.time()),
        tolerant=tolerant,
        templates=lambda name: _template(name, environ),
    )
    return read, site


def _template(name: str, environ: Mapping[str, str]) -> str | None:
    """
    The knob SUBMIT_TEMPLATE_<name>, as HTCondor's configuration has it; its macros are left to the description.
    """
    from kettle.client.connections.condor_config import CondorConfig

    return CondorConfig(environ).raw(f"SUBMIT_TEMPLATE_{name}")


def _automatic(source: str, now: float) -> dict[str, str]:
    from kettle.submit.submit_machine import machine_macros

    local = time.localtime(now)
    return {
        **machine_macros(),
        "SUBMIT_FILE": source,
        "SUBMIT_TIME": str(int(now)),
        "YEAR": f"{local.tm_year}",
        "MONTH": f"{local.tm_mon:02}",
        "DAY": f"{local.tm_mday:02}",
    }
