"""From a job's ad to what a batch system runs for it."""

import posixpath
from typing import Final

from kettle.execution.job_environment.job_ad import JobAd
from kettle.jobs.quoting import (
    environment_of,
    split_environment_v1,
    split_v1,
    split_v2,
)
from kettle.transfer.submit_side_paths import STDERR, STDOUT
from kettle_services.ce.domain.batch.script import Program

_NOWHERE: Final = "/dev/null"


def program_of(job: JobAd, sandbox: str) -> Program:
    """
    What is run, and with what.

    Raises:
        QuotingError: arguments or environment of the job are not well formed.
    """
    iwd = sandbox if job.transfers else job.text("Iwd") or sandbox
    out, err, stdin = job.stream("Out"), job.stream("Err"), job.stream("In")
    if job.transfers:
        stdin = posixpath.basename(stdin) if stdin else None
        stdout = f"{sandbox}/{STDOUT}" if out else _NOWHERE
        stderr = f"{sandbox}/{STDERR}" if err else _NOWHERE
        stderr = stdout if out and out == err else stderr
    else:
        stdout, stderr = (posixpath.join(iwd, path) if path else _NOWHERE for path in (out, err))
    return Program(
        words=[posixpath.join(iwd, job.command), *_arguments(job)],
        environment={**_environment(job), "_CONDOR_SCRATCH_DIR": sandbox, "_CONDOR_JOB_IWD": iwd},
        directory=posixpath.join(iwd, job.text("RemoteIwd") or ""),
        stdin=posixpath.join(iwd, stdin) if stdin else _NOWHERE,
        stdout=stdout,
        stderr=stderr,
    )


def _arguments(job: JobAd) -> list[str]:
    arguments = job.text("Arguments")
    return split_v1(job.text("Args") or "") if arguments is None else split_v2(arguments)


def _environment(job: JobAd) -> dict[str, str]:
    if (text := job.text("Environment")) is not None:
        return environment_of(split_v2(text))
    return environment_of(split_environment_v1(job.text("Env") or "", job.text("EnvDelim") or ";"))
