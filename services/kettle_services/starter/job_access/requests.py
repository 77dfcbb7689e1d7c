"""Answers the requests of people who look into the job, with the job's own rights."""

import os
import posixpath
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Final

import msgspec

from kettle.execution.attempts.job_spec import JobSpec
from kettle.execution.attempts.messages import AccessReply, AccessRequest
from kettle.execution.job_environment.job_ad import JobAd
from kettle.execution.processes.launch import Program
from kettle.execution.processes.side_program import spawn_beside
from kettle.execution.sandbox.directory import Sandbox, acting_as
from kettle.execution.sandbox.output_files import STDERR, STDOUT
from kettle.execution.sandbox.safe_open import open_beneath, open_place
from kettle.execution.system.cgroup import Cgroup
from kettle.jobs.quoting import QuotingError
from kettle_services.starter.execution.process_tree import ProcessTree
from kettle_services.starter.execution.program import program_of
from kettle_services.starter.job_access.sessions import NotStartedError, SessionError, Sessions
from kettle_wire.codes import RefusalCode
from kettle_wire.commands.access import (
    CLOSE_SESSION,
    EXCHANGE,
    LONGEST_LOOK,
    OPEN_SESSION,
    PEEK,
    FilePiece,
    FilePlace,
    Opened,
    OpenSession,
    Peek,
    Peeked,
)

if TYPE_CHECKING:
    import select

    from kettle.execution.containers.job_container import JobContainer

_SHELL: Final = "/bin/sh"
_STREAMS: Final = {STDOUT: "Out", STDERR: "Err"}

_encode: Final = msgspec.msgpack.Encoder().encode


class AccessRequests:
    """All requests of people about one job."""

    def __init__(
        self,
        spec: JobSpec,
        job: JobAd,
        sandbox: Sandbox,
        cgroup: Cgroup | None,
        say: Callable[[AccessReply], object],
    ) -> None:
        """`say` passes on an answer that was waited for."""
        self._spec = spec
        self._job = job
        self._sandbox = sandbox
        self._cgroup = cgroup
        self._tree: ProcessTree | None = None
        self._container: JobContainer | None = None
        self._program: Program | None = None
        self._still = False
        self._say = say
        self._sessions = Sessions(self._answer, self._refuse)

    def meet(
        self,
        tree: ProcessTree | None,
        container: "JobContainer | None",
        program: Program | None,
        *,
        still: bool,
    ) -> None:
        """
        The job's processes, as far as there are any; `program`: what they execute, if not what the ad says; `still`: they are
        suspended.
        """
        self._tree, self._container, self._program, self._still = tree, container, program, still

    @property
    def due(self) -> float:
        """When something has to be done that no descriptor tells, on `boottime`."""
        return self._sessions.due

    def register(self, poll: "select.poll") -> None:
        """Have a poll watch what the programs of visitors say."""
        self._sessions.register(poll)

    def go_on(self, ready: set[int]) -> None:
        """Do what is due, after a poll that has found these descriptors ready."""
        self._sessions.go_on(ready)

    def close(self) -> None:
        """End all programs of visitors."""
        self._sessions.end()

    def hear(self, asked: AccessRequest) -> AccessReply | None:
        """The answer; None if it follows later."""
        try:
            reply = self._carry_out(asked)
        except NotStartedError as error:
            return AccessReply(asked.number, code=RefusalCode.NOT_READY, reason=str(error))
        except (SessionError, QuotingError) as error:
            return AccessReply(asked.number, code=RefusalCode.REFUSED, reason=str(error))
        except OSError as error:
            return AccessReply(asked.number, code=RefusalCode.REFUSED, reason=error.strerror or str(error))
        return None if reply is None else AccessReply(asked.number, _encode(reply))

    def _answer(self, number: int, reply: msgspec.Struct) -> None:
        self._say(AccessReply(number, _encode(reply)))

    def _refuse(self, number: int, reason: str) -> None:
        self._say(AccessReply(number, code=RefusalCode.REFUSED, reason=reason))

    def _carry_out(self, asked: AccessRequest) -> msgspec.Struct | None:
        match asked.verb:
            case PEEK.verb:
                return self._peek(PEEK.decode_request(asked.body))
            case OPEN_SESSION.verb:
                return self._open(asked.number, OPEN_SESSION.decode_request(asked.body))
            case EXCHANGE.verb:
                return self._sessions.exchange(asked.number, EXCHANGE.decode_request(asked.body))
            case CLOSE_SESSION.verb:
                return self._sessions.close(CLOSE_SESSION.decode_request(asked.body).session)
            case _:
                raise SessionError(f"this machine does not know how to {asked.verb}")

    # -- files -------------------------------------------------------------------------------------------------------

    def _peek(self, request: Peek) -> Peeked:
        left = LONGEST_LOOK
        pieces: list[FilePiece] = []
        with acting_as(self._spec.account):
            for place in request.files:
                pieces.append(self._piece(place, min(place.length, left)))
                left -= len(pieces[-1].data)
        return Peeked(files=pieces)

    def _piece(self, place: FilePlace, length: int) -> FilePiece:
        try:
            fd = self._opened(place.name)
        except OSError as error:
            return FilePiece(name=place.name, trouble=error.strerror or str(error))
        try:
            size = os.fstat(fd).st_size
            offset = place.offset if place.offset >= 0 else max(0, size + place.offset)
            return FilePiece(name=place.name, offset=offset, size=size, data=os.pread(fd, length, offset))
        except OSError as error:
            return FilePiece(name=place.name, trouble=error.strerror or str(error))
        finally:
            os.close(fd)

    def _opened(self, name: str) -> int:
        """A file of the sandbox, or a standard stream, also by the name that its owner gave it."""
        for stream, attribute in _STREAMS.items():
            given = self._job.stream(attribute)
            if given is None:
                if name == stream:
                    raise OSError(f"the job keeps no {attribute.lower().replace('out', 'output')} stream")
            elif name in {stream, given, posixpath.basename(given)}:
                return self._stream(stream, given)
        return open_beneath(self._sandbox.path, name)

    def _stream(self, stream: str, given: str) -> int:
        if self._job.transfers:
            if stream == STDERR and given == self._job.stream("Out"):
                stream = STDOUT
            return open_beneath(self._sandbox.path, stream)
        place = os.open(posixpath.join(self._job.text("Iwd") or "/", given), os.O_PATH | os.O_CLOEXEC)
        try:
            if os.fstat(place).st_dev == os.stat("/proc").st_dev:  # noqa: PTH116 - short
                raise PermissionError("it is in /proc, and there it would tell of the starter")
            return open_place(place)  # with the job's rights: where it writes, it may look
        finally:
            os.close(place)

    # -- programs ----------------------------------------------------------------------------------------------------

    def _open(self, number: int, request: OpenSession) -> Opened | None:
        tree = self._tree
        if tree is None:
            raise NotStartedError("the job's program does not run yet; ask again later")
        if tree.status is not None:
            raise SessionError("the job's program does not run any more")
        if (known := self._sessions.known(request.session)) is not None:
            return known.opened(number)
        if self._still:
            raise SessionError(
                "the job is suspended, and so would be what is started beside it; ask again later"
            )
        container, cgroup, account = self._container, self._cgroup, self._spec.account
        environment = {} if request.terminal is None else {"TERM": request.terminal.kind}
        words = ["-c", 'exec "$@"', "sh", *request.command]
        if container is not None:
            program = Program(
                path=_SHELL,
                arguments=words,
                environment=environment,
                directory="/",
                stdin="",
                stdout="",
                stderr="",
                account=account,
            )
            start = partial(container.beside, tree.pid, cgroup)
        else:
            job = self._program or program_of(self._spec, self._job, self._sandbox.path)
            program = msgspec.structs.replace(
                job, path=_SHELL, arguments=words, environment={**job.environment, **environment}
            )
            start = partial(spawn_beside, cgroup, job=tree.pid)
        return self._sessions.open(number, request, program, tree, start)
