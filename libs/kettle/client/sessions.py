"""
Interactive sessions, as people and programs ask for them (`SessionClient`), and as the jobs of one do (`OwnSession`).

    async with Client.connect() as pool:
        session = await pool.sessions.create(NewSession(kind="dask", size=SessionSize(workers=4)))
        session = await pool.sessions.wait(session.id, "ready")

Jobs of a session have no credential that could be copied out of them: they ask by way of their starter and shadow.
"""

import os
from collections.abc import Mapping, Sequence
from typing import Final

import msgspec

from kettle.bus.ports import FROM_JOB, Rep, Req
from kettle.client.connections.transport import Requests, new_id
from kettle.client.errors import ClientError, PoolUnreachableError
from kettle_wire.commands import sessions as wire
from kettle_wire.commands.gateway import AccessMade
from kettle_wire.commands.sessions import (
    AgentOrders,
    AgentReport,
    NewSession,
    SessionCertificate,
    SessionFiles,
    SessionNews,
    SessionProfiles,
    SessionView,
    SignCertificate,
)
from kettle_wire.endpoint import Caller, Endpoint, Repeat
from kettle_wire.sessions import SessionAdapt, SessionState

PATIENCE_S: Final = 20.0
_SLACK_S: Final = 10.0
"""An answer may come so much later than was said."""


class NoSessionServiceError(ClientError):
    """The pool has no service of interactive sessions; the message says what happened, and what to add."""

    def __init__(self, why: object) -> None:
        super().__init__(
            f"this pool has no service of interactive sessions, or it does not answer ({why}): sessions has to be in daemon_list of "
            "[master] in kettle.toml; kettle status --daemons says whether it runs"
        )


class SessionEndedError(ClientError):
    """A session is over that somebody waits for; `session` is how it ended."""

    def __init__(self, session: SessionView) -> None:
        super().__init__(f"session {session.name} has ended ({session.outcome}): {session.reason}")
        self.session = session


class SessionClient:
    """
    Asks the service of interactive sessions. Every method raises NoSessionServiceError where there is none.
    """

    def __init__(self, requests: Requests) -> None:
        self._requests = requests

    async def create(self, new: NewSession, *, command: str = "") -> SessionView:
        """
        Begin a session; it is recorded when this returns, and nothing of it runs yet. `command`: the id of a repeat.
        """
        request = wire.CreateSession(id=command or new_id(), new=new)
        return (await self.ask(wire.CREATE_SESSION, request)).session

    async def list(self, *, everybody: bool = False, ended: bool = False) -> Sequence[SessionView]:
        """One's own, and those that are shared with one; the oldest first."""
        request = wire.ListInteractive(everybody=everybody, ended=ended)
        return (await self.ask(wire.LIST_INTERACTIVE, request)).sessions

    async def show(self, session: str) -> SessionView:
        """One by its id or name, with its members and why they wait."""
        return await self.ask(wire.SHOW_INTERACTIVE, wire.ShowInteractive(session=session))

    async def scale(self, session: str, workers: int) -> SessionView:
        """Have so many workers, and not be adapted any more."""
        return await self._change(wire.ChangeInteractive(id=new_id(), session=session, workers=workers))

    async def adapt(self, session: str, minimum: int, maximum: int) -> SessionView:
        """Have as many workers as the load wants, between two numbers."""
        adapt = SessionAdapt(minimum=minimum, maximum=maximum)
        return await self._change(wire.ChangeInteractive(id=new_id(), session=session, adapt=adapt))

    async def fix(self, session: str) -> SessionView:
        """Keep as many workers as there are wanted now."""
        return await self._change(wire.ChangeInteractive(id=new_id(), session=session, fixed=True))

    async def share(self, session: str, people: Sequence[str]) -> SessionView:
        """Let these people use it, and nobody else: names, and `group:NAME`."""
        request = wire.ChangeInteractive(id=new_id(), session=session, share=list(people))
        return await self._change(request)

    async def limit(
        self, session: str, *, life: float | None = None, idle: float | None = None
    ) -> SessionView:
        """Seconds from its beginning, and seconds without use, after which it ends; 0: never."""
        request = wire.ChangeInteractive(id=new_id(), session=session, life=life, idle=idle)
        return await self._change(request)

    async def restart(self, session: str, reason: str = "") -> SessionView:
        """Start its head again, and its workers with it."""
        request = wire.RestartInteractive(id=new_id(), session=session, reason=reason)
        return (await self.ask(wire.RESTART_INTERACTIVE, request)).session

    async def stop(self, session: str, reason: str = "") -> SessionView:
        """End it and its jobs."""
        request = wire.StopInteractive(id=new_id(), session=session, reason=reason)
        return (await self.ask(wire.STOP_INTERACTIVE, request)).session

    async def profiles(self) -> SessionProfiles:
        """The kinds of sessions that there are to be had."""
        return await self.ask(wire.LIST_PROFILES, wire.ListProfiles())

    async def certificate(self, session: str, request: bytes) -> SessionCertificate:
        """A certificate by which the members of a session know a program of ours; `request` is PEM."""
        asked = SignCertificate(session=session, request=request)
        return await self.ask(wire.SIGN_CERTIFICATE, asked)

    async def news(self, session: str, after: int, *, wait: float = wire.LONGEST_WAIT_S) -> SessionNews:
        """The events behind so many, and how it is then; waits for some, up to 20 seconds."""
        request = wire.FollowInteractive(session=session, after=after, wait=wait)
        return await self.ask(wire.FOLLOW_INTERACTIVE, request, deadline=wait + _SLACK_S)

    async def report(self, session: str, report: AgentReport) -> AgentOrders:
        """
        Say how the scheduler of a session is that is this program; waits up to `report.wait` seconds for something to do.
        """
        request = wire.ReportScheduler(session=session, report=report)
        return await self.ask(wire.REPORT_SCHEDULER, request, deadline=report.wait + _SLACK_S)

    async def wait(self, session: str, *states: SessionState) -> SessionView:
        """
        How a session is when it has come into one of these states; without time limit, which the caller sets.

        Raises SessionEndedError: it has ended, and that was none of them.
        """
        shown = await self.show(session)
        while shown.state not in states:
            if shown.state == "ended":
                raise SessionEndedError(shown)
            shown = (await self.news(shown.id, shown.events)).session
        return shown

    async def _change(self, request: wire.ChangeInteractive) -> SessionView:
        return (await self.ask(wire.CHANGE_INTERACTIVE, request)).session

    async def ask(self, endpoint: Endpoint[Req, Rep], request: Req, *, deadline: float = 0.0) -> Rep:
        """What the service answers; for who makes the ids of commands. Raises NoSessionServiceError."""
        patience = min(self._requests.transport.patience, PATIENCE_S)
        try:
            if deadline:
                return await self._requests.ask(
                    endpoint, request, patience=max(patience, deadline), deadline=deadline
                )
            return await self._requests.ask(endpoint, request, patience=patience)
        except PoolUnreachableError as error:
            raise NoSessionServiceError(error) from error


class _Nothing(msgspec.Struct, frozen=True):
    """A question without words."""


_OF_JOBS: Final = (Caller.JOB,)
_AGENT: Final = Endpoint(
    "sessions", "agent", AgentReport, AgentOrders, callers=_OF_JOBS, repeat=Repeat.HARMLESS
)
_CERTIFICATE: Final = Endpoint(
    "sessions", "certificate", SignCertificate, SessionCertificate, callers=_OF_JOBS, repeat=Repeat.QUERY
)
_SHOW: Final = Endpoint("sessions", "show", _Nothing, SessionView, callers=_OF_JOBS, repeat=Repeat.QUERY)
_ACCESS: Final = Endpoint(
    "sessions", "access", _Nothing, AccessMade, callers=_OF_JOBS, repeat=Repeat.HARMLESS
)
_FILES: Final = Endpoint("sessions", "files", _Nothing, SessionFiles, callers=_OF_JOBS, repeat=Repeat.QUERY)
"""What jobs ask by way of their shadows, which make `kettle_wire.commands.sessions.MemberAsks` of it."""


class OwnSession:
    """
    The session of the job that this process runs in.  Methods raise `kettle.bus.ports.BusError`: RefusedError if the session has
    nothing more to do with the job, others while the pool cannot be reached.
    """

    def __init__(self, config: str) -> None:
        """`config`: the path of the job's `.chirp.config`."""
        from kettle.bus.job_connection import FromJob  # in jobs only

        self._job = FromJob(f"{FROM_JOB}{config}")

    @classmethod
    def of_job(cls, environ: Mapping[str, str] | None = None) -> "OwnSession":
        """The session of the job with this environment; raises ClientError: it is none."""
        environ = os.environ if environ is None else environ
        config, session = environ.get("_CONDOR_CHIRP_CONFIG", ""), environ.get("KETTLE_SESSION", "")
        if not config or not session:
            raise ClientError("this is no job of an interactive session: KETTLE_SESSION is not set")
        return cls(config)

    async def agent(self, report: AgentReport) -> AgentOrders:
        """Say how the cluster is, and hear what to do; waits up to `report.wait` seconds for something."""
        return await self._job.call(_AGENT, "-", report, deadline=report.wait + _SLACK_S)

    async def certificate(self, request: bytes) -> SessionCertificate:
        """A certificate of the session for a key of ours; `request` is PEM."""
        return await self._job.call(_CERTIFICATE, "-", SignCertificate(session="-", request=request))

    async def show(self) -> SessionView:
        """How the session is, without asking why members wait."""
        return await self._job.call(_SHOW, "-", _Nothing())

    async def access(self) -> AccessMade:
        """
        What is shown to the gateway to reach the services of the session's other jobs, for an hour at most.
        """
        return await self._job.call(_ACCESS, "-", _Nothing())

    async def files(self) -> dict[str, str]:
        """The files that the session's owner has given to it."""
        return (await self._job.call(_FILES, "-", _Nothing())).files
