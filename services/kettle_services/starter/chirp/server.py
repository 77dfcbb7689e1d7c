"""
The socket for requests of a job's programs to the submit side, which only they can use.

It listens on the loopback device; a client without the cookie, which is in a file of the job's account, gets no answer.
"""

import os
import socket
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

import msgspec

from kettle.execution.attempts.job_spec import ChirpPolicy, Input, JobSpec
from kettle.execution.attempts.messages import Reply, Unanswered
from kettle.execution.job_environment.helper_programs import bring
from kettle.execution.job_environment.job_ad import JobAd
from kettle.execution.sandbox.directory import Sandbox
from kettle.execution.system.linux import boottime
from kettle.jobs import pool_access
from kettle.jobs.nodes import HOSTS, NUMBER
from kettle_wire.commands.chirp import Chirped, CloseFile, OpenFile, Trouble
from kettle_wire.commands.questions import Commanded, OnNode
from kettle_wire.session_attributes import ID as MEMBER
from kettle_wire.session_attributes import TASK_QUEUE

if TYPE_CHECKING:
    import select

    from kettle_services.starter.chirp.connection import Connection
    from kettle_services.starter.chirp.conversation import Delayed
    from kettle_services.starter.chirp.publishing import Publishing
    from kettle_services.starter.chirp.waits import Asked

CONFIG: Final = ".chirp.config"
_HOST: Final = "127.0.0.1"
_MOST: Final = 16
"""Connections of one job at once, with those that went away before they were answered; of a node there may be more."""
_MOST_NODES: Final = 256
"""How many more: a launcher has one to each node, and beyond some dozens it goes by way of others."""
_UNANSWERED_S: Final = 300.0
"""After that time a request is not answered any more, because the startd that received it has ended."""
_COOKIE_BYTES: Final = 16
_OFFER_S: Final = 5.0
"""How long a connection may take to show its cookie: anybody on the machine can make one."""


_TROUBLES: Final = {
    "offline": Trouble.OFFLINE,
    "later": Trouble.TRY_AGAIN,
    "refused": Trouble.INVALID_REQUEST,
}


class _Asked(msgspec.Struct, frozen=True):
    connection: "Connection | None"
    opens: bool
    at: float


class Proxy:
    """
    Listens for the job's programs, if the machine lets them ask anything; `ask` passes on what they want, under a number.
    """

    def __init__(
        self,
        spec: JobSpec,
        job: JobAd,
        ask: "Callable[[Asked], int]",
        publishing: "Publishing | None" = None,
    ) -> None:
        self._publishing = publishing
        self._spec = spec
        self._job = job
        self._ask_shadow = ask
        self._policy = allowed(spec.chirp, job)
        self._most = _MOST + min(_MOST_NODES, len((job.text(HOSTS) or "").split()))
        self._cookie = ""
        self._listener: socket.socket | None = None
        self._connections: dict[int, Connection] = {}
        self._asked: dict[int, _Asked] = {}
        """
        Who waits for an answer, by number; nobody does if we ask for ourselves, or the connection is over.
        """
        self._delayed: Delayed | None = None

    @property
    def told(self) -> dict[str, str]:
        """What the programs have set without hurry so far."""
        return dict(self._delayed.told) if self._delayed is not None else {}

    def furnish(self, sandbox: Sandbox, *, contained: bool) -> None:
        """Listen, and write the address into the sandbox. Raises OSError."""
        if self._policy == ChirpPolicy():
            return
        self._cookie = os.urandom(_COOKIE_BYTES).hex()
        self.listen()
        if contained:
            bring(self._spec.execute, lambda name, path: sandbox.place(Input(name, 0o755, path=path)))
        self._write(sandbox)

    def move_into(self, pid: int, sandbox: Sandbox) -> None:
        """
        Listen where the job's programs are: in the network of this process of its container, if that is another one.

        A job whose network cannot be joined runs nevertheless, without chirp.
        """
        if self._listener is None or _network(pid) == _network(os.getpid()):
            return
        from kettle.execution.containers.loopback import loopback_listener  # rarely needed, as below

        try:
            self.listen(loopback_listener(pid, self._spec.account, self._most))
            self._write(sandbox)
        except OSError as error:
            sys.excepthook(type(error), error, error.__traceback__)

    def listen(self, listener: socket.socket | None = None) -> None:
        """
        Listen, on a socket of this machine's or on one that was made in the job's own network. Raises OSError.
        """
        if listener is None:
            listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
            listener.bind((_HOST, 0))
            listener.listen(self._most)
        if self._listener is not None:
            self._listener.close()
        listener.setblocking(False)
        self._listener = listener

    def _write(self, sandbox: Sandbox) -> None:
        assert self._listener is not None
        port: int = self._listener.getsockname()[1]
        sandbox.place(Input(CONFIG, 0o600, data=f"{_HOST} {port} {self._cookie}\n".encode()))

    # -- in the starter's poll ---------------------------------------------------------------------------------------

    @property
    def due(self) -> float:
        """When something has to be done that no descriptor tells, on `boottime`."""
        times = (
            each.pauses_until if each.trusted else each.since + _OFFER_S
            for each in self._connections.values()
        )
        return min(times, default=float("inf"))

    def register(self, poll: "select.poll") -> None:
        """Add the sockets to a poll, for new clients, requests and answers."""
        if self._listener is not None:
            poll.register(self._listener, 1)  # POLLIN
        for connection in self._connections.values():
            poll.register(connection.fileno(), connection.events)

    def go_on(self, ready: set[int]) -> None:
        """
        Do what is due, after a poll that has found these descriptors ready. Nothing that a job says may end it.
        """
        if self._listener is not None and self._listener.fileno() in ready:
            self._accept(self._listener)
        now = boottime()
        for fd, connection in list(self._connections.items()):
            try:
                if fd in ready:
                    connection.go_on()
                connection.go_on_in_time(now)
                if not connection.trusted and now >= connection.since + _OFFER_S:
                    connection.over = True
            except Exception as error:  # noqa: BLE001 - see above
                sys.excepthook(type(error), error, error.__traceback__)
                connection.over = True
            if connection.over:
                self._drop(connection)

    def hear(self, reply: Reply) -> None:
        """The submit side has answered, or has not."""
        asked = self._asked.pop(reply.number, None)
        connection = asked.connection if asked is not None else None
        if asked is None or connection is None:
            return
        answer = _in_the_protocol(reply)
        if connection.over:
            if asked.opens and answer.result >= 0:
                self._close_file(answer.result)
            return
        connection.answered(answer)
        if connection.over:
            self._drop(connection)

    def close(self) -> None:
        """Close all connections."""
        for connection in list(self._connections.values()):
            self._drop(connection)
        if self._listener is not None:
            self._listener.close()
            self._listener = None

    def _accept(self, listener: socket.socket) -> None:
        from kettle_services.starter.chirp.connection import (
            Connection,  # rarely needed: each page costs memory
        )
        from kettle_services.starter.chirp.conversation import Delayed

        try:
            sock, _ = listener.accept()
        except OSError:
            return  # it has disconnected again, or there is no room for it: it will try again
        if len(self._connections) + self._abandoned() >= self._most:
            strangers = [each for each in self._connections.values() if not each.trusted]
            if not strangers:
                sock.close()
                return
            self._drop(min(strangers, key=lambda each: each.since))
        if self._delayed is None:
            self._delayed = Delayed(self._job, self._policy.delayed)
        connection = Connection(sock, self._cookie, self._policy, self._delayed, self._ask, self._publishing)
        self._connections[connection.fileno()] = connection

    def _abandoned(self) -> int:
        """Open requests of closed connections: each may hold a piece of a file."""
        late = boottime() - _UNANSWERED_S
        for number in [number for number, asked in self._asked.items() if asked.at < late]:
            del self._asked[number]
        return sum(each.connection is not None and each.connection.over for each in self._asked.values())

    def _ask(self, connection: "Connection | None", wish: "Asked") -> None:
        number = self._ask_shadow(wish)
        self._asked[number] = _Asked(connection, isinstance(wish, OpenFile), boottime())

    def _close_file(self, fd: int) -> None:
        self._ask(None, CloseFile(fd))

    def _drop(self, connection: "Connection") -> None:
        self._connections.pop(connection.fileno(), None)
        connection.close()
        for fd in connection.open_files:
            self._close_file(fd)
        for node, session in connection.sessions:
            self._ask(None, OnNode(node=node, session=session, verb="close_session"))


def _network(pid: int) -> str:
    return os.readlink(f"/proc/{pid}/ns/net")  # noqa: PTH115 - a string


def _in_the_protocol(reply: Reply) -> Chirped:
    match reply.answer:
        case Chirped() as answer:
            return answer
        case Commanded() as answer:
            data = msgspec.msgpack.encode(answer)
            return Chirped(len(data), data)
        case Unanswered(why=why):
            return Chirped(_TROUBLES[why])
        case _:
            return Chirped(Trouble.UNKNOWN)


def allowed(policy: ChirpPolicy, job: JobAd) -> ChirpPolicy:
    """
    What of it this job has asked for: nobody has to ask to set attributes without hurry, and jobs of an interactive session or a task
    queue speak with the service of it.
    """
    proxy = job.flag("WantIOProxy", default=False)
    return msgspec.structs.replace(
        policy,
        files=policy.files and proxy,
        updates=policy.updates and proxy,
        commands=policy.commands and job.flag(pool_access.ATTRIBUTE, default=False),
        sessions=policy.sessions and (job.given(MEMBER) or job.given(TASK_QUEUE)),
        nodes=policy.nodes and job.number(NUMBER) is not None,
    )
