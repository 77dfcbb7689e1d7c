"""
Attempts of jobs and the claims that they run on, by the events alone: nothing runs twice at once. Pure.

Jobs that are over are remembered as one bit each, so that a long log does not fill the memory.
"""

from typing import Final

import msgspec

from kettle.audit.report import AuditReport
from kettle_wire.events import (
    ClaimEnded,
    ClaimGranted,
    Event,
    JobAssigned,
    JobCompleted,
    JobKept,
    JobLeft,
    JobRemoved,
    JobStarted,
    JobVacated,
)
from kettle_wire.jobs import JobId

_PREFIX: Final = "job/"


class _Life(msgspec.Struct):
    """A job that is not over."""

    attempt: int | None
    """The newest one; None: not known, because the beginning was not read."""
    alive: int | None
    """The attempt that lives, 0: none; None: not known."""
    ended: bool = False
    """It was removed, or has completed."""
    kept: bool = False
    """It stays in the queue after that."""


class Attempts:
    """
    One attempt of a job at a time: assigned, perhaps started, ended; the next has the next number.

    `whole`: the events are fed from the first one on; otherwise what came before is believed.
    """

    def __init__(self, shard: str, report: AuditReport, *, whole: bool) -> None:
        self._shard = shard
        self._check = report.check("attempts")
        self._unknown = 0 if whole else None
        self._lives: dict[str, _Life] = {}
        self._over: dict[int, int] = {}
        """Cluster -> a bit for each of its jobs that is over."""

    def over(self, stream: str) -> bool:
        """Whether a stream is that of a job that is over."""
        if not stream.startswith(_PREFIX):
            return False
        job = JobId.parse(stream.removeprefix(_PREFIX))
        return bool(self._over.get(job.cluster, 0) >> job.proc & 1)

    def feed(self, stream: str, position: int, event: Event) -> bool:
        """Look at the next event; returns whether its job is over now."""
        if not stream.startswith(_PREFIX):
            return False
        if self.over(stream):
            self._found(position, f"{type(event).__name__} of {stream} comes after the job was over")
            return True
        life = self._lives.setdefault(stream, _Life(self._unknown, self._unknown))
        match event:
            case JobAssigned():
                self._assigned(stream, position, life, event.attempt)
            case JobStarted():
                self._running(stream, position, life, "starts", event.attempt)
            case JobVacated():
                self._running(stream, position, life, "ends", event.attempt)
                life.alive = 0
            case JobCompleted():
                self._running(stream, position, life, "completes", event.attempt)
                life.alive, life.ended = 0, True
            case JobRemoved():
                life.ended = True
            case JobKept() | JobLeft():
                life.kept = isinstance(event, JobKept)
            case _:
                pass
        if life.ended and life.alive == 0 and not life.kept:
            self._end(stream)
        return stream not in self._lives

    def _assigned(self, stream: str, position: int, life: _Life, attempt: int) -> None:
        self._check.examined += 1
        if life.ended:
            self._found(position, f"attempt {attempt} of {stream} begins after the job had ended")
        if life.alive:
            self._found(position, f"attempt {attempt} of {stream} begins while attempt {life.alive} lives")
        if life.attempt is not None and attempt != life.attempt + 1:
            self._found(position, f"attempt {attempt} of {stream} follows attempt {life.attempt}")
        life.alive = life.attempt = attempt

    def _running(self, stream: str, position: int, life: _Life, what: str, attempt: int) -> None:
        if life.alive is None:
            life.alive = life.attempt = attempt
        elif life.alive != attempt:
            self._found(position, f"attempt {attempt} of {stream} {what} and does not live")

    def _end(self, stream: str) -> None:
        job = JobId.parse(stream.removeprefix(_PREFIX))
        self._over[job.cluster] = self._over.get(job.cluster, 0) | 1 << job.proc
        self._lives.pop(stream, None)

    def _found(self, position: int, sentence: str) -> None:
        self._check.found(self._shard, position, sentence)


class Claims:
    """
    A claim lives from its grant to its end, and carries one attempt at a time, which is over before the claim is.

    It is not a law of this log that a slot has only one claim at a time: a worker may give a slot away again before the
    queue has received the end of the previous claim.
    """

    def __init__(self, shard: str, report: AuditReport, *, whole: bool) -> None:
        self._shard = shard
        self._check = report.check("claims")
        self._whole = whole
        self._on: dict[str, str] = {}
        """Claim that lives -> stream of the job whose attempt runs on it, or empty."""
        self._of: dict[str, str] = {}
        """The reverse."""

    def feed(self, stream: str, position: int, event: Event) -> None:
        """Look at the next event."""
        match event:
            case ClaimGranted(claim=claim):
                self._check.examined += 1
                if claim in self._on:
                    self._found(position, f"claim {claim} is granted and lives already")
                self._on[claim] = ""
            case ClaimEnded(claim=claim):
                if job := self._on.get(claim):
                    self._found(position, f"claim {claim} ends while an attempt of {job} lives on it")
                elif self._whole and claim not in self._on:
                    self._found(position, f"claim {claim} ends and does not live")
                self._on.pop(claim, None)
            case JobAssigned(claim=claim):
                self._assigned(stream, position, claim)
            case JobVacated() | JobCompleted():
                claim = self._of.pop(stream, "")
                if self._on.get(claim) == stream:
                    self._on[claim] = ""
            case _:
                pass

    def _assigned(self, stream: str, position: int, claim: str) -> None:
        if (job := self._on.get(claim)) and job != stream:
            self._found(position, f"{stream} is given claim {claim}, on which an attempt of {job} lives")
        elif self._whole and claim not in self._on:
            self._found(position, f"{stream} is given claim {claim}, which does not live")
        else:
            self._on[claim] = stream
            self._of[stream] = claim

    def _found(self, position: int, sentence: str) -> None:
        self._check.found(self._shard, position, sentence)
