"""
Addresses of objects that need a key are asked for on the submit side, where the key is, when they are needed.
"""

import errno
from collections.abc import Sequence
from itertools import islice
from typing import Final

import msgspec

from kettle.execution.attempts.job_spec import JobSpec
from kettle.execution.attempts.messages import Reply, Unanswered
from kettle.execution.job_environment.job_ad import JobAd
from kettle.execution.system.linux import boottime
from kettle.transfer.file_lists import shown
from kettle.transfer.plugin import Move, chosen
from kettle_services.starter.file_transfer.plugin_process import TransferError, plugins_of
from kettle_services.starter.submit_side_questions import SubmitSideQuestions
from kettle_wire.attempts import Ending
from kettle_wire.codes import HoldCode
from kettle_wire.commands.questions import SignedUrls, SignUrls

_METHODS: Final = frozenset({"s3", "gs"})
_AT_ONCE: Final = 200
"""Addresses in one message, which they have to fit into."""
_REPEAT_S: Final = 5.0


class Signing:
    """
    The files of one transfer.  Those whose method a program of the machine's owner or of the job moves are its matter.
    """

    def __init__(
        self,
        spec: JobSpec,
        job: JobAd,
        questions: SubmitSideQuestions,
        moves: Sequence[Move],
        *,
        upload: bool,
    ) -> None:
        self._questions = questions
        self._upload = upload
        self._plain = list(moves)
        self._wanted: list[Move] = []
        for plugin, files in chosen(plugins_of(spec, job), moves):
            if plugin is not None and plugin.ours and any(file.method in _METHODS for file in files):
                self._wanted += [file for file in files if file.method in _METHODS]
        self._signed: dict[Move, Move] = {}
        self._number = 0
        """Of what is asked; 0: nothing is."""
        self._say_at = 0.0
        self._trouble: SignedUrls | None = None

    @property
    def done(self) -> bool:
        """Whether there is nothing to wait for."""
        return self._trouble is not None or not self._open

    @property
    def _open(self) -> list[Move]:
        return list(islice((move for move in self._wanted if move not in self._signed), _AT_ONCE))

    def say(self) -> None:
        """Ask (again), if it is time."""
        if boottime() >= self._say_at:
            self._say_at = boottime() + _REPEAT_S
            question = SignUrls([move.url for move in self._open], self._upload)
            if self._number:
                self._questions.again(self._number, question)
            else:
                self._number = self._questions.ask(question)

    def timeout_ms(self) -> int:
        """When it is."""
        return int(max(0.0, self._say_at - boottime()) * 1000) + 1

    def hear(self, reply: Reply) -> None:
        """
        An answer; one to what is not asked any more does not count.  Without one the same is asked again in a while.
        """
        if not self._number or reply.number != self._number:
            return
        match reply.answer:
            case SignedUrls(urls=urls) if len(urls) == len(wanted := self._open):
                for move, url in zip(wanted, urls, strict=True):
                    self._signed[move] = msgspec.structs.replace(
                        move, url=url, scheme=move.method, name=move.url
                    )
                self._number, self._say_at = 0, 0.0
            case SignedUrls() as refusal:
                self._trouble = refusal
            case Unanswered(why="refused", reason=reason):
                self._trouble = SignedUrls([], reason)
            case _:
                pass

    def moves(self) -> list[Move]:
        """
        What is to be moved now.

        Raises:
            TransferError: the submit side signs nothing.
        """
        if (trouble := self._trouble) is not None:
            what = "output" if self._upload else "input"
            code = HoldCode.TransferOutputError if self._upload else HoldCode.TransferInputError
            first = shown(self._open[0].url)
            reason = f"Transfer {what} files failure at the access point: {first}: {trouble.reason}"
            raise TransferError(Ending(code=code, subcode=trouble.errno or errno.EACCES, reason=reason))
        return [self._signed.get(move, move) for move in self._plain]
