"""
From a job's ad to what is executed.
"""

import os
import posixpath

from kettle.execution.attempt import JobSpec
from kettle.execution.environment import job_environment
from kettle.execution.jobad import JobAd
from kettle.execution.outputs import STDERR, STDOUT
from kettle.execution.process import Program
from kettle.execution.quoting import split_arguments_v1, split_arguments_v2_raw


def program_of(spec: JobSpec, job: JobAd, sandbox: str) -> Program:
    """
    Program, arguments, environment and streams of the job.

    Raises:
        QuotingError: arguments or environment are not well formed.
    """
    out, err, stdin = job.stream("Out"), job.stream("Err"), job.stream("In")
    stdout = f"{sandbox}/{STDOUT}" if out else os.devnull
    stderr = f"{sandbox}/{STDERR}" if err else os.devnull
    if stdin is not None and job.flag("TransferIn", default=True):
        stdin = posixpath.basename(stdin)
    return Program(
        path=posixpath.join(sandbox, job.command),  # an absolute one stays what it is
        arguments=_arguments(job),
        environment=job_environment(spec, job, sandbox, os.environ),
        directory=sandbox,
        stdin=posixpath.join(sandbox, stdin) if stdin else os.devnull,
        stdout=stdout,
        stderr=stdout if out and out == err else stderr,
        account=spec.account,
    )


def _arguments(job: JobAd) -> list[str]:
    arguments = job.text("Arguments")
    return (
        split_arguments_v1(job.text("Args") or "") if arguments is None else split_arguments_v2_raw(arguments)
    )
