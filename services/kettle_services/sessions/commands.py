"""What people ask the service of interactive sessions."""

import asyncio
import secrets
from collections.abc import Mapping
from typing import Final

from kettle.bus.ports import RefusedError
from kettle.eventsourcing.command_pipeline import Decision
from kettle_services.sessions.access import SessionAccess
from kettle_services.sessions.domain.changes import changed_target
from kettle_services.sessions.domain.creation import NotPossible, planned, profile_of
from kettle_services.sessions.domain.session import InteractiveSession
from kettle_services.sessions.domain.state import STREAM
from kettle_services.sessions.domain.views import profile_view, view
from kettle_services.sessions.engine import Engine
from kettle_services.sessions.following import Following
from kettle_services.sessions.kept_files import KeptFiles
from kettle_services.sessions.profile_file import ProfileFile
from kettle_services.sessions.reasons import Reasons
from kettle_services.sessions.record import Histories
from kettle_wire.codes import RefusalCode
from kettle_wire.commands.sessions import (
    LARGEST_FILES,
    ChangeInteractive,
    CreateSession,
    FollowInteractive,
    InteractiveSessions,
    ListInteractive,
    ListProfiles,
    RestartInteractive,
    SessionNews,
    SessionProfiles,
    SessionTold,
    SessionView,
    ShowInteractive,
    StopInteractive,
)
from kettle_wire.endpoint import Position
from kettle_wire.events.interactive import (
    InteractiveChanged,
    InteractiveClosing,
    InteractiveCreated,
    InteractiveEvent,
    InteractiveRestarted,
)
from kettle_wire.identity import Identity

_ID_BYTES: Final = 6
_EXPLAINED: Final = 50
"""Sessions of one list of which schedd and negotiator are asked why members wait; of others the record says it."""


class SessionCommands:
    """Decides about the sessions of one engine."""

    def __init__(
        self,
        engine: Engine,
        following: Following,
        access: SessionAccess,
        profiles: ProfileFile,
        reasons: Reasons,
        histories: Histories,
        kept: KeptFiles,
        *,
        limit: int,
    ) -> None:
        """`limit`: sessions of one person."""
        self._engine = engine
        self._following = following
        self._access = access
        self._profiles = profiles
        self._reasons = reasons
        self._histories = histories
        self._kept = kept
        self._limit = limit

    async def create(self, request: CreateSession, caller: Identity) -> Decision[SessionTold]:
        """A new session; nothing of it was submitted when this is answered."""
        new, session = request.new, secrets.token_hex(_ID_BYTES)
        try:
            name, profile = profile_of(new, self._profiles.profiles)
            plan, target = planned(new, name, profile, session)
        except NotPossible as refusal:
            raise RefusedError(RefusalCode.UNACCEPTABLE, str(refusal)) from refusal
        if sum(len(each.encode()) for each in new.files.values()) > LARGEST_FILES:
            raise RefusedError(
                RefusalCode.TOO_LARGE, f"the files of a session have {LARGEST_FILES:,} bytes together at most"
            )
        place = await self._following.place()
        self._require_room(new.name or "", caller)
        if new.files:
            await asyncio.to_thread(self._kept.keep, session, new.files)
        created = InteractiveCreated(
            session=session,
            owner=caller.name,
            name=new.name or f"{new.kind}-{session}",
            kind=new.kind,
            plan=plan,
            target=target,
            followed=place,
        )
        return self._decided(session, [created])

    def _require_room(self, name: str, caller: Identity) -> None:
        own = [each for each in self._engine.living.values() if each.owner == caller.name]
        if name and any(each.name == name for each in own):
            raise RefusedError(
                RefusalCode.SESSION_EXISTS,
                f"you have a session {name} already: give this one another name, or stop that one (kettle session stop {name})",
            )
        if len(own) >= self._limit:
            oldest = sorted(own, key=lambda each: each.created)[:3]
            names = ", ".join(f"{each.name} ({each.state})" for each in oldest)
            raise RefusedError(
                RefusalCode.LIMIT,
                f"you have {len(own)} sessions, which is the most: stop one of them, as {names} (kettle session stop NAME)",
            )

    async def list_sessions(self, request: ListInteractive, caller: Identity) -> InteractiveSessions:
        """Those that somebody may see."""
        if request.everybody and not self._access.administers(caller):
            raise RefusedError(
                RefusalCode.DENIED,
                f"sessions of others are for administrators to list, and {caller.name} is none",
            )
        found = [
            each
            for each in self._engine.sessions.values()
            if (request.ended or not each.ended) and (request.everybody or self._is_own(each, caller))
        ]
        found.sort(key=lambda each: each.created)
        newest = [each for each in found if not each.ended][-_EXPLAINED:]
        said = await asyncio.gather(*map(self._reasons.of, newest))
        waits = {each.id: why for each, why in zip(newest, said, strict=True)}
        return InteractiveSessions(
            sessions=[view(each, waits.get(each.id, ()), members=False) for each in found]
        )

    def _is_own(self, session: InteractiveSession, caller: Identity) -> bool:
        shared = session.owner == caller.name or bool(session.target.shared_with)
        return shared and self._access.may_look(session, caller)

    async def show(self, request: ShowInteractive, caller: Identity) -> SessionView:
        """One of them, with why its members wait."""
        session = self._access.shown(request.session, caller)
        return view(session, await self._reasons.of(session))

    async def change(self, request: ChangeInteractive, caller: Identity) -> Decision[SessionTold]:
        """Another size, other limits, other people."""
        session = self._open(request.session, caller)
        profile = self._profiles.profiles.get(session.plan.profile)
        try:
            new, what = changed_target(session, request, profile)
        except NotPossible as refusal:
            raise RefusedError(RefusalCode.UNACCEPTABLE, str(refusal)) from refusal
        if new == session.target:
            return self._decided(session.id, [])
        return self._decided(session.id, [InteractiveChanged(target=new, by=caller.name, what=what)])

    async def restart(self, request: RestartInteractive, caller: Identity) -> Decision[SessionTold]:
        """The head again, and the workers with it."""
        session = self._open(request.session, caller)
        return self._decided(session.id, [InteractiveRestarted(by=caller.name, reason=request.reason)])

    async def stop(self, request: StopInteractive, caller: Identity) -> Decision[SessionTold]:
        """The end of it."""
        session = self._access.owned(request.session, caller)
        if session.closing or session.ended:
            return self._decided(session.id, [])
        reason = request.reason or f"stopped by {caller.name}"
        closing = InteractiveClosing(outcome="stopped", reason=reason, by=caller.name)
        return self._decided(session.id, [closing])

    def _open(self, which: str, caller: Identity) -> InteractiveSession:
        session = self._access.owned(which, caller)
        if session.closing or session.ended:
            how = "is over" if session.ended else "is being stopped"
            raise RefusedError(
                RefusalCode.SESSION_OVER, f"session {session.name} {how}: nothing of it can be changed"
            )
        return session

    def _decided(self, session: str, facts: list[InteractiveEvent]) -> Decision[SessionTold]:
        events, after = self._engine.following(session, facts)
        assert after is not None, "a command has no session be forgotten"

        def reply(position: Position) -> SessionTold:
            return SessionTold(position=position, session=view(after))

        changes = [(f"{STREAM}{session}", event) for event in events]
        return Decision(reply, changes, effect=self._engine.changed)

    async def follow(self, request: FollowInteractive, caller: Identity) -> SessionNews:
        """What has happened, when something has."""
        session = self._access.shown(request.session, caller).id
        events = await self._histories.after(session, request.after, within=request.wait)
        now = self._access.shown(session, caller)
        return SessionNews(events=events, session=view(now, await self._reasons.of(now)))

    async def profiles(self, request: ListProfiles, caller: Identity) -> SessionProfiles:
        """The kinds of sessions that there are to be had."""
        del request, caller
        shown = [profile_view(name, each) for name, each in sorted(self._profiles.profiles.items())]
        return SessionProfiles(profiles=shown, source=self._profiles.source, problems=self._profiles.problems)


def counted(sessions: Mapping[str, InteractiveSession]) -> dict[tuple[str, ...], float]:
    """How many there are, by kind and state."""
    found: dict[tuple[str, ...], float] = {}
    for each in sessions.values():
        key = (each.kind, each.state)
        found[key] = found.get(key, 0.0) + 1
    return found


def counted_workers(sessions: Mapping[str, InteractiveSession]) -> dict[tuple[str, ...], float]:
    """How many workers are wanted, run and wait."""
    wanted = running = 0
    for each in sessions.values():
        wanted += each.target.workers
        running += sum(one.status == "running" and not one.ending for one in each.workers.values())
    waiting = max(0, wanted - running)
    return {("wanted",): float(wanted), ("running",): float(running), ("waiting",): float(waiting)}
