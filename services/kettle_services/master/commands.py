"""Commands of administrators to a master, over the bus or by signals, and their results."""

import asyncio
import contextlib
import logging
import time
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Collection, Coroutine, Mapping, Sequence
from functools import partial
from typing import Any, Final

import msgspec

from kettle.accounts.lookup import own_name
from kettle.bus.ports import RefusedError, Served
from kettle.embedded import EmbeddedError
from kettle.pool.daemon_states import DaemonState
from kettle.runtime import SettingsError
from kettle.runtime.settings_problems import Problem
from kettle_services.master.account_access import AccountsError
from kettle_services.master.domain.command_rules import chosen, needs_restart
from kettle_services.master.domain.daemon import How
from kettle_services.master.domain.start_order import READ_ACCESS_POINTS, role_of, shards, stop_stages
from kettle_services.master.settings import MasterSettings
from kettle_services.master.supervision.daemon_list import DaemonList
from kettle_wire.codes import RefusalCode
from kettle_wire.commands import master as wire
from kettle_wire.commands.master import (
    ADMIT_ACCESS_POINT,
    CONTROL,
    FORGET_ACCESS_POINT,
    QUERY_DAEMONS,
    REVOKE_MEMBERS,
    SHUT_OUT,
    AccessPointAdmitted,
    AdmitAccessPoint,
    Control,
    Controlled,
    ForgetAccessPoint,
    MembersRevoked,
    PeopleShutOut,
    QueryDaemons,
    RevokeMembers,
    ShutOut,
    Switched,
)
from kettle_wire.identity import Identity

MASTER: Final = "master"
"""What the master itself is called among its daemons."""

_READ_SETTINGS: Final = frozenset({"restart", "reconfig"})
"""Commands after which services read their settings again."""
_REMEMBERED: Final = 256
"""Answers that are kept for those who ask again."""
_HEARD_S: Final = 3.0
"""How long a service has to answer whether its new settings can be used."""

_log: Final = logging.getLogger(__name__)


def _no_access_points(_settings: MasterSettings, _name: str, _people: str) -> tuple[str, bool]:
    return "", False


class MasterCommands:
    """Takes commands for the daemons of one host."""

    def __init__(
        self,
        daemons: DaemonList,
        settings: MasterSettings,
        *,
        load: Callable[[], MasterSettings],
        succeed: Callable[[How], None],
        tasks: asyncio.TaskGroup,
        admit: Callable[[MasterSettings], None] = lambda _settings: None,
        check: Callable[[], Awaitable[Sequence[Problem]]],
        keep: Callable[[MasterSettings], None] = lambda _settings: None,
        revoke: Callable[[str, Sequence[str]], bool] = lambda _kind, _keys: False,
        shut_out: Callable[[Sequence[str]], bool] = lambda _people: False,
        admit_access_point: Callable[[MasterSettings, str, str], tuple[str, bool]] = _no_access_points,
    ) -> None:
        """
        `load` reads the master's settings again; `succeed` makes the master end and restart itself; `admit` receives
        the visitors from other pools that the settings admit, when that has changed; `check` looks at the configuration of
        all services before anything is changed; `keep` writes down which settings are in force now; `revoke` has the
        NATS server believe nothing more of the keys of a kind of members, and says whether it is ours, as `shut_out` does, which
        lets none of these people in by an account of this machine; `admit_access_point` lets in one that has joined, or its
        people no more: the account that they are in, and whether anything has changed.
        """
        self._revoke = revoke
        self._shut_out = shut_out
        self._admit_access_point = admit_access_point
        self._keep = keep
        self._check = check
        self._admit = admit
        self._daemons = daemons
        self.settings = settings
        self.reconfigured = 0.0
        """Unix time at which the settings were last read again."""
        self._load = load
        self._succeed = succeed
        self._tasks = tasks
        self._answers: OrderedDict[tuple[str, str], asyncio.Future[Controlled]] = OrderedDict()
        self._ending: set[asyncio.Task[None]] = set()
        self._readers_behind = False
        """Whether access points have changed since who reads their events was told of them."""
        self._renewing: asyncio.Task[None] | None = None
        self._actions: Mapping[
            wire.ControlAction, Callable[[Sequence[str], How], Awaitable[list[Switched]]]
        ] = {"on": self._on, "off": self._off, "restart": self._restart, "reconfig": self._reconfig}

    def served(self) -> list[Served[Any, Any]]:
        """The endpoints, with who answers them."""
        return [
            Served(CONTROL, self.control, self._administrators),
            Served(QUERY_DAEMONS, self.query, self._administrators),
            Served(REVOKE_MEMBERS, self.revoke),
            Served(SHUT_OUT, self.shut_out),
            Served(ADMIT_ACCESS_POINT, self.admit_access_point),
            Served(FORGET_ACCESS_POINT, self.forget_access_point),
        ]

    async def admit_access_point(self, request: AdmitAccessPoint, caller: Identity) -> AccessPointAdmitted:
        """
        Let in an access point that has joined; refused as `revoke` is, and `unacceptable`: a queue of ours has its name.
        """
        if f"schedd.{request.name}" in shards(self.settings.daemon_list).get("schedd", ()):
            raise RefusedError(
                RefusalCode.UNACCEPTABLE, f"{request.name} is a queue of this pool: join under another name"
            )
        return self._told_of(request.name, request.people, caller)

    async def forget_access_point(self, request: ForgetAccessPoint, caller: Identity) -> AccessPointAdmitted:
        """Its people are let in no more; refused as `revoke` is."""
        return self._told_of(request.name, "", caller)

    def _told_of(self, name: str, people: str, caller: Identity) -> AccessPointAdmitted:
        try:
            account, changed = self._admit_access_point(self.settings, name, people)
        except EmbeddedError as error:
            raise RefusedError(RefusalCode.NOT_RECORDED, str(error)) from error
        if not account:
            raise _not_ours()
        if changed:
            _log.info(
                "%s: an access point %s",
                caller.name,
                "joins" if people else "leaves",
                extra={"access_point": name},
            )
            self._readers_behind = True
            if self._renewing is None or self._renewing.done():
                self._renewing = self._start(self._renew_readers(), "read the events of access points")
                self._ending.add(self._renewing)
                self._renewing.add_done_callback(self._ending.discard)
        return AccessPointAdmitted(people_account=account)

    async def _renew_readers(self) -> None:
        """
        Have who reads the events of access points do so of those that there are now: a bus gives a connection no other permissions.
        One after the other, so that of several collectors all but one are there, and only the streams of one gateway break off.
        """
        while self._readers_behind:
            self._readers_behind = False
            for daemon in self.settings.daemon_list:
                if role_of(daemon) in READ_ACCESS_POINTS and daemon not in self._daemons.off:
                    await self._daemons.supervisor(daemon).restarted()

    async def revoke(self, request: RevokeMembers, caller: Identity) -> MembersRevoked:
        """
        Withdraw credentials; `unavailable`: the NATS server is not ours; `not_recorded`: the pool's files cannot be used.
        """
        self._tell(partial(self._revoke, request.kind, request.keys))
        _log.info(
            "%s: credentials are withdrawn", caller.name, extra={"kind": request.kind, "keys": request.keys}
        )
        return MembersRevoked()

    async def shut_out(self, request: ShutOut, caller: Identity) -> PeopleShutOut:
        """
        Let some people in no more; `unavailable`: the NATS server is not ours; `not_recorded`: the pool's files cannot be used.
        """
        self._tell(partial(self._shut_out, request.people))
        _log.info("%s: these people are shut out", caller.name, extra={"people": request.people})
        return PeopleShutOut()

    @staticmethod
    def _tell(tell: Callable[[], bool]) -> None:
        try:
            ours = tell()
        except EmbeddedError as error:
            raise RefusedError(RefusalCode.NOT_RECORDED, str(error)) from error
        if not ours:
            raise _not_ours()

    def _administrators(self) -> Collection[str]:
        return self.settings.administrators or (own_name(),)

    async def query(self, request: QueryDaemons, caller: Identity) -> wire.Daemons:
        """How the daemons are."""
        del request, caller
        state = self._daemons.state
        return wire.Daemons(
            started=state.started,
            version=state.version,
            ready=state.ready,
            daemons=[_report(daemon) for daemon in state.daemons],
        )

    async def control(self, request: Control, caller: Identity) -> Controlled:
        """Switch daemons; who repeats a command gets the first answer."""
        place = (caller.token, request.id)
        answer = self._answers.get(place)
        if answer is None:
            answer = self._answers[place] = asyncio.ensure_future(self._carry_out(request, caller))
            while len(self._answers) > _REMEMBERED:
                self._answers.popitem(last=False)
        return await asyncio.shield(answer)

    def reconfigure(self) -> None:
        """SIGHUP: the settings of the whole host may have changed."""
        self._start(self._reconfig_checked(), "reconfigure")

    def close(self) -> None:
        """Switch nothing any more: the host goes down."""
        for task in self._ending:
            task.cancel()

    async def _checked(self) -> tuple[list[Switched], list[str]]:
        """Why the configuration cannot be used, and what looks wrong in it."""
        problems = await self._check()
        refused = [str(each) for each in problems if not each.warning]
        for why in refused:
            _log.error("everything goes on with the settings as they were: %s", why)
        answers = [Switched(daemon=MASTER, outcome="refused", why=why) for why in refused]
        return answers, [str(each) for each in problems if each.warning]

    async def _reconfig_checked(self) -> None:
        refused, _ = await self._checked()
        if not refused:
            await self._reconfig((), "graceful")

    # -- deciding ----------------------------------------------------------------------------------------------------

    async def _carry_out(self, request: Control, caller: Identity) -> Controlled:
        listed = self.settings.daemon_list
        names, unknown = chosen([name for name in request.daemons if name.lower() != MASTER], listed)
        if unknown:
            raise RefusedError(
                RefusalCode.UNKNOWN_DAEMON,
                f"this host has no daemon {', '.join(unknown)}; it has: {', '.join(listed)}",
            )
        _log.info(
            "%s: %s %s of %s", caller.name, request.action, request.how, ", ".join(names) or "everything"
        )
        whole = not request.daemons or any(name.lower() == MASTER for name in request.daemons)
        warnings: list[str] = []
        if request.action in _READ_SETTINGS:
            refused, warnings = await self._checked()
            if refused:
                return Controlled(switched=refused, warnings=warnings)
        try:
            return Controlled(
                switched=await self._actions[request.action](() if whole else names, request.how),
                warnings=warnings,
            )
        except OSError as error:
            raise RefusedError(
                RefusalCode.NOT_RECORDED,
                f"the master cannot write down what is switched off: {error.strerror}",
            ) from error

    async def _on(self, names: Sequence[str], how: How) -> list[Switched]:
        del how
        names = names or self.settings.daemon_list
        self._daemons.switch_on(names)
        answers: list[Switched] = []
        for name in names:
            supervisor = self._daemons.supervisor(name)
            ran = supervisor.wanted and supervisor.state.status in {"starting", "running", "standby"}
            supervisor.on()
            answers.append(_begun(name, unless="it is on" if ran else ""))
        return answers

    async def _off(self, names: Sequence[str], how: How) -> list[Switched]:
        names = names or self.settings.daemon_list
        self._daemons.switch_off(names)
        states = {name: self._daemons.supervisor(name).state.status for name in names}
        task = self._start(self._end(names, how), "switch off")
        self._ending.add(task)
        task.add_done_callback(self._ending.discard)
        return [_begun(name, unless="it is off" if states[name] == "off" else "") for name in names]

    async def _end(self, names: Sequence[str], how: How) -> None:
        for stage in stop_stages(names):
            for name in stage:
                if name in self._daemons.off:  # else it was switched on again before its turn came
                    self._daemons.supervisor(name).off(how)
            for name in stage:
                await self._daemons.supervisor(name).is_off()
        await self._daemons.swept()

    async def _restart(self, names: Sequence[str], how: How) -> list[Switched]:
        if not names:
            self._succeed(how)
            return [Switched(daemon=MASTER, outcome="begun")]
        answers: list[Switched] = []
        for name in names:
            if name in self._daemons.off:
                why = f"it is switched off; switch it on with: kettle on --daemon {name}"
                answers.append(Switched(daemon=name, outcome="refused", why=why))
            else:
                self._daemons.supervisor(name).restart(how)
                answers.append(Switched(daemon=name, outcome="begun"))
        return answers

    async def _reconfig(self, names: Sequence[str], how: How) -> list[Switched]:
        del how
        answers = [] if names else [self._reconfig_master()]
        asked = names or self.settings.daemon_list
        told = [name for name in asked if self._daemons.supervisor(name).renew()]
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_HEARD_S):
                for name in told:
                    await self._daemons.supervisor(name).said.wait()
        self._keep(self.settings)
        return answers + [self._renewed(name, told=name in told) for name in asked]

    def _renewed(self, name: str, *, told: bool) -> Switched:
        supervisor = self._daemons.supervisor(name)
        if not told:
            return Switched(daemon=name, outcome="nothing", why="it does not run")
        if not supervisor.said.is_set():
            return Switched(daemon=name, outcome="begun", why="it has not said yet what it makes of it")
        said = supervisor.state.settings
        if said.startswith("refused: "):
            return Switched(daemon=name, outcome="refused", why=said.removeprefix("refused: "))
        return Switched(daemon=name, outcome="begun" if said == "changed" else "nothing", why=said)

    def _reconfig_master(self) -> Switched:
        try:
            new = self._load()
        except (SettingsError, ValueError) as error:
            _log.error("goes on with the settings as they were: %s", error)
            return Switched(daemon=MASTER, outcome="refused", why=str(error))
        late = needs_restart(msgspec.structs.asdict(self.settings), msgspec.structs.asdict(new))
        kept = {name: getattr(self.settings, name) for name in late}
        merged = msgspec.structs.replace(new, **kept)
        changed, was = merged != self.settings, self.settings
        # The members of a group may have changed without the settings.
        others = any(name.startswith("@") for name in merged.accounts) or _let_in(merged) != _let_in(was)
        others |= bool(merged.nats_certificate)  # its files may hold another certificate by now
        if others:
            try:
                self._admit(merged)
            except (AccountsError, EmbeddedError, SettingsError) as error:
                _log.error("%s", error)
                return Switched(daemon=MASTER, outcome="refused", why=str(error))
        self.settings = merged  # not before: what was refused is tried again when they are read again
        self._daemons.use(merged)
        self.reconfigured = time.time()
        if late:
            why = f"used when the host is restarted (kettle restart): {', '.join(late)}"
            return Switched(daemon=MASTER, outcome="done" if changed else "nothing", why=why)
        return Switched(
            daemon=MASTER, outcome="done" if changed else "nothing", why="" if changed else "unchanged"
        )

    def _start(self, work: Coroutine[Any, Any, object], name: str) -> asyncio.Task[Any]:
        return self._tasks.create_task(work, name=name)


def _not_ours() -> RefusedError:
    return RefusedError(
        RefusalCode.UNAVAILABLE,
        "this master runs no NATS server that could be told: say it to its own operator",
    )


def _let_in(settings: MasterSettings) -> tuple[object, ...]:
    """Who may connect, as far as the settings say."""
    return settings.flock_from, settings.view_from, settings.accounts, settings.accounts_directory


def _begun(name: str, *, unless: str) -> Switched:
    return Switched(daemon=name, outcome="nothing" if unless else "begun", why=unless)


def _report(daemon: DaemonState) -> wire.DaemonReport:
    return wire.DaemonReport(
        name=daemon.name,
        status=daemon.status,
        pid=daemon.pid,
        since=daemon.since,
        starts=daemon.starts,
        hangs=daemon.hangs,
        last_exit=daemon.last_exit,
        settings=daemon.settings,
    )
