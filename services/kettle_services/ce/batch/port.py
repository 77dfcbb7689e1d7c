"""
What has to be possible with a batch system.  Each adapter passes the same conformance suite.

An adapter keeps nothing: what it submitted it finds again by the intent, which the job carries as its name.  It runs commands with
time limits, and may be cancelled at any moment.
"""

from collections.abc import Collection, Mapping, Sequence
from typing import Protocol

import msgspec

from kettle_services.ce.domain.batch.listed import ListedJob
from kettle_wire.batch import BatchEnd, BatchId, BatchRequest, Intent


class UnavailableError(Exception):
    """It does not answer, which says nothing about any job."""


class InDoubtError(Exception):
    """It was asked to take a job, and nobody knows whether it did."""


class NotTakenError(Exception):
    """It has not taken the job; the text is its own."""

    def __init__(self, words: str, *, passes: bool) -> None:
        """`passes`: another try may succeed, without a change of the job."""
        super().__init__(words)
        self.passes = passes


class Submission(msgspec.Struct, frozen=True, kw_only=True):
    """A job that is to be submitted."""

    intent: Intent
    owner: str
    """The account that submits it; empty: that of this service."""
    directory: str
    """Its sandbox: where it runs.  Of one whose files travel with it: a directory that its node has."""
    log: str = ""
    """Where what the batch system itself prints goes; empty: into its sandbox."""
    script: str
    """What it runs, for `sh`, without directives."""
    request: BatchRequest


class Job(msgspec.Struct, frozen=True):
    """A job that the batch system was given."""

    id: BatchId
    intent: Intent
    owner: str = ""


class BatchSystem(Protocol):
    """A batch system as one submits to it."""

    @property
    def settling(self) -> float:
        """Seconds after which a job whose submission was in doubt is there, or never will be."""
        ...

    async def check(self) -> Sequence[str]:
        """What is wrong with it, each in one sentence; empty: nothing.  Raises UnavailableError."""
        ...

    async def submit(self, submission: Submission) -> BatchId:
        """
        Submit one job.

        Raises:
            NotTakenError: it is not there.
            InDoubtError: it may be there.  Cancelled, it is in doubt as well.
        """
        ...

    async def find(self, intents: Collection[Intent], owners: Collection[str]) -> Mapping[Intent, BatchId]:
        """
        Which of the intents it has, or has had as far as it remembers, by one question for all.  Raises UnavailableError.
        """
        ...

    async def poll(self, jobs: Collection[Job]) -> Mapping[BatchId, ListedJob]:
        """
        What it says of jobs, by one question for all; of one that it does not name it says nothing.  Raises UnavailableError: an
        error is never an empty answer.
        """
        ...

    async def cancel(self, job: Job) -> bool:
        """
        Have a job removed; one that is not there is no error.  That it is over is said by `poll` and `accounting`, not by this.

        False: it answers that it has no such job.  Raises UnavailableError.
        """
        ...

    async def hold(self, job: Job, *, running: bool) -> None:
        """
        Have a job wait, or if it runs stop.  Raises UnavailableError, or NotTakenError if that cannot be.
        """
        ...

    async def release(self, job: Job, *, running: bool) -> None:
        """Have it go on.  Raises as `hold`."""
        ...

    async def accounting(self, jobs: Collection[Job]) -> Mapping[BatchId, BatchEnd | None]:
        """
        How jobs ended, as far as it keeps books: those that it knows, None: such a job has not ended.  Raises UnavailableError.
        """
        ...
