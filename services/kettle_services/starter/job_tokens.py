"""
The files of a job's tokens, and those of its interactive session: there before its input files are fetched and its program starts, renewed while it runs, gone before anybody
else gets into the sandbox.

They are written with the rights of the job's account, and nothing in their place is followed: what a job puts there can mislead
the job alone.
"""

import os
import sys
from contextlib import suppress
from typing import Final

from kettle.execution.attempts.messages import Reply, Unanswered
from kettle.execution.job_environment.job_ad import JobAd
from kettle.execution.sandbox.directory import Sandbox, acting_as, remove_tree
from kettle.execution.system.linux import boottime
from kettle.jobs.image_registries import is_login
from kettle.jobs.needed_tokens import DIRECTORY, SERVICES, file_of
from kettle_services.starter.submit_side_questions import SubmitSideQuestions
from kettle_wire.attempts import Ending
from kettle_wire.codes import HoldCode
from kettle_wire.commands.questions import FetchTokens, JobTokens
from kettle_wire.job_tokens import JobToken
from kettle_wire.session_attributes import FILES

_REPEAT_S: Final = 5.0
"""Between two questions for the same."""
_RENEWED: Final = 2 / 3
"""The part of a token's life after which the next one is asked for."""
_SHORTEST_S: Final = 1.0
_LATER_S: Final = 30.0
"""Until a job that runs asks again, which has got none."""
_PLACE: Final = os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_NEW: Final = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_NEVER: Final = float("inf")


class TokenFiles:
    """The token files of one attempt; a job that wants none costs nothing."""

    def __init__(self, job: JobAd, sandbox: Sandbox, questions: SubmitSideQuestions) -> None:
        self._sandbox = sandbox
        self._questions = questions
        self._wanted = self._missing = job.given(SERVICES) or job.given(FILES)
        """There are none yet, and the job cannot start."""
        self._number = 0
        """Of the question that waits for an answer; 0: none does."""
        self.due: float = 0.0 if self._missing else _NEVER
        """When to ask (again), on `boottime`."""
        self.refusal: Ending | None = None
        """Why the job is not to start."""
        self.logins: dict[str, str] = {}
        """By name those with which images of registries are got: no program of the job is to find them."""

    @property
    def missing(self) -> bool:
        """Whether the job has to wait for them."""
        return self._missing and self.refusal is None

    def go_on(self) -> None:
        """Ask, if it is time."""
        if boottime() < self.due:
            return
        self.due = boottime() + _REPEAT_S
        if self._number:
            self._questions.again(self._number, FetchTokens())
        else:
            self._number = self._questions.ask(FetchTokens())

    def hear(self, reply: Reply) -> None:
        """
        An answer.  One that a job that runs does not get is asked for again; it has its old token meanwhile.

        Raises:
            OSError: the first ones cannot be written.
        """
        if not self._number or reply.number != self._number:
            return
        match reply.answer:
            case JobTokens(tokens=tokens):
                self._number = 0
                self._take(tokens)
            case Unanswered(why="refused", reason=reason) if self._missing:
                self.refusal = Ending(code=HoldCode.CorruptedCredential, reason=reason)
            case _:
                self._number = 0
                if not self._missing:
                    self.due = boottime() + _LATER_S

    def _take(self, tokens: list[JobToken]) -> None:
        shortest = min((token.left for token in tokens), default=_LATER_S)
        self.due = boottime() + max(shortest * _RENEWED, _SHORTEST_S)
        self.logins = {token.name: token.text for token in tokens if is_login(token.name)}
        files = [token for token in tokens if token.name not in self.logins]
        try:
            if files:
                with acting_as(self._sandbox.account):
                    _write(f"{self._sandbox.path}/{DIRECTORY}", files)
        except OSError as error:  # the job has put something else into their place
            if self._missing:
                raise
            sys.excepthook(type(error), error, error.__traceback__)
        self._missing = False

    def remove(self) -> None:
        """The attempt is over.  Raises OSError."""
        if not self._wanted:
            return
        self.due, self._number = _NEVER, 0
        path = f"{self._sandbox.path}/{DIRECTORY}"
        if os.path.islink(path) or os.path.isfile(path):  # noqa: PTH113, PTH114 - strings
            os.unlink(path)  # noqa: PTH108
        else:
            remove_tree(path)


def _write(directory: str, tokens: list[JobToken]) -> None:
    """Each whole or not at all, for nobody but the account that we act as."""
    with suppress(
        FileExistsError
    ):  # by us, or by the job: what is opened below is a directory, in the sandbox
        os.mkdir(directory, 0o700)  # noqa: PTH102
    place = os.open(directory, _PLACE)
    try:
        for token in tokens:
            stage, name = f".{os.urandom(8).hex()}", file_of(token.name)
            fd = os.open(stage, _NEW, 0o600, dir_fd=place)
            with os.fdopen(fd, "w", encoding="utf-8") as file:
                file.write(token.text)
            os.rename(stage, name, src_dir_fd=place, dst_dir_fd=place)
    finally:
        os.close(place)
