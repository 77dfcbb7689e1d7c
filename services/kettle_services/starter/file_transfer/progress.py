"""When an attempt's files were moved on their own, and by which addresses."""

import time
from collections.abc import Sequence

import msgspec

from kettle.execution.attempts.job_spec import JobSpec
from kettle.execution.attempts.messages import Reply
from kettle.execution.job_environment.job_ad import JobAd
from kettle.transfer.plugin import Move
from kettle_services.starter.file_transfer.signed_urls import Signing
from kettle_services.starter.submit_side_questions import SubmitSideQuestions
from kettle_wire.attempts import AttemptResult, Transfer
from kettle_wire.moved_files import FileRecord, MovedFiles, summed
from kettle_wire.worker_reports import Started


class Transfers:
    """
    Of one attempt, one after the other: `begin`, `wait_ms` until there is nothing to wait for, `moves`, `end`.
    """

    def __init__(self, spec: JobSpec, job: JobAd, questions: SubmitSideQuestions) -> None:
        self._spec = spec
        self._job = job
        self._questions = questions
        self._signing: Signing | None = None
        self._began = 0.0
        self._input = spec.fetched
        self._output: Transfer | None = None
        self._moved: MovedFiles | None = None
        """Not each of the files: a job that runs for weeks may save a checkpoint of thousands every hour."""

    def begin(self, moves: Sequence[Move], *, upload: bool) -> None:
        """These are to be moved by URL."""
        self._began = time.time()
        self._signing = Signing(self._spec, self._job, self._questions, moves, upload=upload)

    def wait_ms(self) -> int | None:
        """How long to listen before this is asked again; None: all addresses are there."""
        assert self._signing is not None
        if self._signing.done:
            return None
        self._signing.say()
        return self._signing.timeout_ms()

    def hear(self, reply: Reply) -> None:
        """An answer has come; perhaps addresses."""
        if self._signing is not None:
            self._signing.hear(reply)

    def moves(self) -> list[Move]:
        """What is to be moved, as the worker can.  Raises TransferError."""
        assert self._signing is not None
        return self._signing.moves()

    def end(self, *, upload: bool) -> None:
        """They were moved."""
        done = Transfer(began=self._began, ended=time.time())
        if upload:
            self._output = done
        else:
            began = self._input.began if self._input is not None else self._began
            self._input = msgspec.structs.replace(done, began=began)

    def record(self, files: list[FileRecord]) -> None:
        """What became of each, however that ended."""
        if files:
            self._moved = summed(files, self._moved)

    def told(self, result: AttemptResult) -> AttemptResult:
        """The result of the attempt, with the record of its files."""
        if self._moved is None:
            return result
        usage = msgspec.structs.replace(result.usage, moved=self._moved)
        return msgspec.structs.replace(result, usage=usage)

    def started(self, pid: int) -> Started:
        """The job runs, now."""
        return Started(pid=pid, at=time.time(), input=self._input)

    @property
    def output(self) -> Transfer | None:
        """When its results were moved; None: none was by URL."""
        return self._output
