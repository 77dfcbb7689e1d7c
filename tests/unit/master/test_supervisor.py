"""A keeper over a daemon that is no process, and a desk over several."""

import asyncio
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import msgspec
import pytest

from kettle.bus.ports import RefusedError
from kettle.pool.home import open_home
from kettle.runtime import SettingsError
from kettle.runtime.settings_problems import Problem
from kettle.testing.patience import PATIENCE_S
from kettle.testing.served import Endpoints
from kettle_services.master.commands import MasterCommands
from kettle_services.master.domain.daemon import How
from kettle_services.master.settings import MasterSettings
from kettle_services.master.supervision.daemon_list import DaemonList
from kettle_services.master.supervision.processes import Asked
from kettle_services.master.supervision.supervisor import StartGivenUpError, Supervisor
from kettle_services.master.supervision.switched_off import read_off
from kettle_wire.commands.master import (
    CONTROL,
    QUERY_DAEMONS,
    AdmitAccessPoint,
    Control,
    ControlAction,
    QueryDaemons,
)
from kettle_wire.identity import daemon, user

SETTINGS = MasterSettings(
    daemon_list=("schedd", "startd"),
    backoff_constant=0.01,
    backoff_unit=0,
    shutdown_graceful_timeout=0.05,
    shutdown_fast_timeout=0.05,
    administrators=("ada",),
)
PATIENT = msgspec.structs.replace(
    SETTINGS, shutdown_graceful_timeout=PATIENCE_S, shutdown_fast_timeout=PATIENCE_S
)
"""For daemons that do what they are told, on however busy a machine: none is told more for being late."""


class Actor:
    """A daemon that does what the test says: `obeys` are the orders at which it ends."""

    notifies = True

    def __init__(self, name: str, *, obeys: tuple[Asked, ...] = ("graceful", "fast", "kill")) -> None:
        self.name = name
        self.pid = 0
        self.told: list[Asked] = []
        self.starts = 0
        self.refuses = False
        self._obeys = obeys
        self._end: asyncio.Future[int] = asyncio.get_running_loop().create_future()

    async def start(self) -> None:
        await asyncio.sleep(0)
        if self.refuses:
            raise OSError("no such program")
        self.starts += 1
        self.pid = 1000 + self.starts
        self._end = asyncio.get_running_loop().create_future()

    async def wait(self) -> int:
        return await asyncio.shield(self._end)

    def ask(self, what: Asked) -> None:
        self.told.append(what)
        if what in self._obeys:
            self.end(-9 if what == "kill" else 0)

    def end(self, status: int) -> None:
        self.pid = 0
        if not self._end.done():
            self._end.set_result(status)

    def keep_stacks(self) -> Path | None:
        return None

    def last_words(self) -> str:
        return "its last words"

    def restart_reason(self) -> str:
        return ""


async def until(holds: Callable[[], bool]) -> None:
    async with asyncio.timeout(PATIENCE_S):
        while not holds():
            await asyncio.sleep(0.001)


@asynccontextmanager
async def kept(
    actor: Actor, settings: MasterSettings = SETTINGS, *, wanted: bool = True
) -> AsyncGenerator[Supervisor]:
    supervisor = Supervisor(actor, settings, lambda: None, wanted=wanted)
    keeping = asyncio.create_task(supervisor.supervise())
    try:
        yield supervisor
    finally:
        keeping.cancel()
        with suppress(asyncio.CancelledError):
            await keeping


async def test_it_runs_until_it_is_stopped() -> None:
    """Started, ready, ended by somebody else, started again, stopped for good."""
    actor = Actor("schedd")
    async with kept(actor) as supervisor:
        await until(lambda: actor.starts == 1)
        supervisor.heard({"READY": "1"})
        assert ("running", 1001) == (supervisor.state.status, supervisor.state.pid)
        actor.end(1)
        await until(lambda: actor.starts == 2)
        assert ("starting", "status 1") == (supervisor.state.status, supervisor.state.last_exit)
        supervisor.heard({"READY": "1"})
        await supervisor.stop()
        assert ("off", 0, ["graceful"]) == (supervisor.state.status, supervisor.state.pid, actor.told)


async def test_a_stubborn_one_is_asked_more_and_more_harshly() -> None:
    """Graceful, fast, killed; `stop` returns at its end."""
    actor = Actor("schedd", obeys=("kill",))
    async with kept(actor) as supervisor:
        await until(lambda: actor.starts == 1)
        async with asyncio.timeout(PATIENCE_S):
            await supervisor.stop()
        assert ["graceful", "fast", "kill"] == actor.told


async def test_what_is_switched_off_can_be_switched_on() -> None:
    """It does not start by itself, and starts at once when it is told to."""
    actor = Actor("schedd")
    async with kept(actor, wanted=False) as supervisor:
        assert supervisor.ready.is_set()
        assert "off" == supervisor.state.status
        supervisor.on()
        await until(lambda: actor.starts == 1)
        supervisor.off("fast")
        await supervisor.is_off()
        assert ["fast"] == actor.told


async def test_one_that_cannot_be_started_is_given_up_while_the_pool_starts() -> None:
    """
    After so many attempts the start as a whole has failed, with the reason; later that is no reason to give up.
    """
    actor = Actor("schedd")
    actor.refuses = True
    supervisor = Supervisor(actor, SETTINGS, lambda: None)
    with pytest.raises(StartGivenUpError, match=r"schedd ended 3 times: no such program .*\n*its last words"):
        await supervisor.supervise()
    async with kept(actor) as supervisor:
        supervisor.patient = True
        await until(lambda: supervisor.state.starts > 5)


async def test_only_a_startd_is_ended_peacefully() -> None:
    """Others have nothing to wait for."""
    for name, told in (("schedd", "graceful"), ("startd.a", "peaceful")):
        actor = Actor(name, obeys=("graceful", "peaceful"))
        async with kept(actor) as supervisor:
            await until(lambda actor=actor: actor.starts == 1)  # type: ignore[misc]
            supervisor.off("peaceful")
            await supervisor.is_off()
            assert [told] == actor.told


class Office:
    """A desk, and the actors behind it."""

    def __init__(self, home: Path, group: asyncio.TaskGroup, settings: MasterSettings = PATIENT) -> None:
        self.home = open_home(home)
        self.daemons = DaemonList(self.home, settings, pid=1, version="1")
        self.actors = {name: Actor(name) for name in settings.daemon_list}
        self.successions: list[How] = []
        self.loaded = PATIENT
        self.problems: list[Problem] = []
        self.master_commands = MasterCommands(
            self.daemons,
            settings,
            load=self._load,
            succeed=self.successions.append,
            tasks=group,
            check=self._checked,
            admit_access_point=lambda _settings, _name, _people: ("A", True),
        )
        for actor in self.actors.values():
            self.daemons.keep(actor, group)

    async def _checked(self) -> list[Problem]:
        return self.problems

    def _load(self) -> MasterSettings:
        if self.loaded is PATIENT:
            return PATIENT
        raise SettingsError("kettle.toml: [master] colour: unknown setting")

    async def ask(
        self, action: ControlAction, *names: str, how: How = "graceful", id_: str = ""
    ) -> dict[str, str]:
        request = Control(id=id_ or f"{action} {names} {how}", action=action, daemons=list(names), how=how)
        answer = await self.master_commands.control(request, user("ada"))
        return {one.daemon: one.outcome for one in answer.switched}

    async def status(self, name: str, status: str) -> None:
        await until(lambda: self.daemons.supervisor(name).state.status == status)

    async def ready(self) -> None:
        for name, actor in self.actors.items():
            await until(lambda actor=actor: bool(actor.pid))  # type: ignore[misc]
            self.daemons.supervisor(name).heard({"READY": "1"})


@asynccontextmanager
async def office(tmp_path: Path, settings: MasterSettings = PATIENT) -> AsyncGenerator[Office]:
    async with asyncio.TaskGroup() as group:
        it = Office(tmp_path / "home", group, settings)
        await it.ready()
        yield it
        it.master_commands.close()
        await it.daemons.stop_services("fast")


async def test_a_repeated_command_gets_the_first_answer(tmp_path: Path) -> None:
    """A restart whose answer was lost is not carried out twice."""
    async with office(tmp_path) as it:
        assert {"schedd": "begun"} == await it.ask("restart", "schedd", id_="1")
        await until(lambda: it.actors["schedd"].starts == 2)
        await it.ready()
        assert {"schedd": "begun"} == await it.ask("restart", "schedd", id_="1")
        assert {"schedd": "begun"} == await it.ask("restart", "schedd", id_="2")
        await until(lambda: it.actors["schedd"].starts == 3)
        assert ["graceful", "graceful"] == it.actors["schedd"].told


async def test_off_is_written_down_before_anything_ends(tmp_path: Path) -> None:
    """The worker ends before the queue, and what was off before is off without being asked twice."""
    async with office(tmp_path) as it:
        assert {"schedd": "begun", "startd": "begun"} == await it.ask("off")
        assert {"schedd", "startd"} == read_off(it.home)
        assert [] == it.actors["schedd"].told
        await it.status("schedd", "off")
        assert "off" == it.daemons.supervisor("startd").state.status
        assert {"schedd": "nothing", "startd": "nothing"} == await it.ask("off", how="fast")
        assert {"startd": "refused"} == await it.ask("restart", "startd")
        assert {"startd": "begun"} == await it.ask("on", "startd")
        assert {"schedd"} == read_off(it.home)
        await it.status("startd", "starting")


async def test_one_that_is_switched_on_before_its_turn_stays(tmp_path: Path) -> None:
    """While the host waits for the startd's jobs, a schedd that is wanted again does not end."""
    async with office(tmp_path) as it:
        await it.ask("off", how="peaceful")
        await it.status("startd", "stopping")
        assert {"schedd": "nothing"} == await it.ask("on", "schedd")
        await it.ask("off", "startd", how="fast")
        await it.status("startd", "off")
        for _ in range(100):  # everything that follows from that has followed
            await asyncio.sleep(0)
        assert ([], "running") == (it.actors["schedd"].told, it.daemons.supervisor("schedd").state.status)


async def test_switching_one_off_does_not_hurry_another(tmp_path: Path) -> None:
    """A peaceful end stays one, whatever else is switched off gracefully."""
    async with office(tmp_path) as it:
        await it.ask("off", "startd", how="peaceful")
        await it.ask("off", "schedd")
        await it.status("schedd", "off")
        assert (["peaceful"], "stopping") == (
            it.actors["startd"].told,
            it.daemons.supervisor("startd").state.status,
        )


async def test_whoever_is_no_administrator_changes_nothing(tmp_path: Path) -> None:
    """Neither may others switch, nor look."""
    async with office(tmp_path) as it:
        with pytest.raises(RefusedError, match="eve is no administrator"):
            await Endpoints(it.master_commands.served()).ask(
                CONTROL, Control(id="1", action="off"), user("eve")
            )
        with pytest.raises(RefusedError, match="eve is no administrator"):
            await Endpoints(it.master_commands.served()).ask(QUERY_DAEMONS, QueryDaemons(), user("eve"))
        assert frozenset() == read_off(it.home)


async def test_a_host_is_restarted_by_its_master(tmp_path: Path) -> None:
    """Without a name, or with the master's own, the master takes its own place."""
    async with office(tmp_path) as it:
        assert {"master": "begun"} == await it.ask("restart", how="peaceful")
        assert {"master": "begun"} == await it.ask("restart", "master")
        assert ["peaceful", "graceful"] == it.successions
        assert [] == it.actors["schedd"].told


async def test_a_mistake_in_the_configuration_changes_nothing(tmp_path: Path) -> None:
    """
    All mistakes are answered, no daemon hears of it, and the master itself stays as it is; a warning stops nothing.
    """
    async with office(tmp_path) as it:
        it.problems = [
            Problem("kettle.toml:3: [startd] start", "is no expression"),
            Problem("KETTLE_X", "unknown"),
        ]
        it.problems.append(Problem("kettle.toml:9", "is odd", warning=True))
        for action in ("reconfig", "restart"):
            asked = it.master_commands.control(Control(id=action, action=action), user("ada"))
            answer = await asked
            assert [
                ("master", "refused", "kettle.toml:3: [startd] start: is no expression"),
                ("master", "refused", "KETTLE_X: unknown"),
            ] == [(one.daemon, one.outcome, one.why) for one in answer.switched]
            assert ["kettle.toml:9: is odd"] == answer.warnings
        assert [[], []] == [actor.told for actor in it.actors.values()]
        assert ([], 0.0) == (it.successions, it.master_commands.reconfigured)
        it.problems = it.problems[2:]
        assert {"startd": "begun"} == await it.ask("restart", "startd")


async def test_what_each_makes_of_its_settings_is_told(tmp_path: Path) -> None:
    """
    Refused with the sentence, unchanged, or begun; a master with bad settings goes on with those that it has.
    """
    async with office(tmp_path) as it:
        it.loaded = MasterSettings()
        asked = asyncio.create_task(
            it.master_commands.control(Control(id="1", action="reconfig"), user("ada"))
        )
        await until(lambda: all(actor.told == ["renew"] for actor in it.actors.values()))
        it.daemons.supervisor("schedd").heard({"X_KETTLE_SETTINGS": "refused: kettle.toml: no"})
        it.daemons.supervisor("startd").heard({"X_KETTLE_SETTINGS": "unchanged"})
        assert [
            ("master", "refused", "kettle.toml: [master] colour: unknown setting"),
            ("schedd", "refused", "kettle.toml: no"),
            ("startd", "nothing", "unchanged"),
        ] == [(one.daemon, one.outcome, one.why) for one in (await asked).switched]
        assert it.master_commands.settings is PATIENT


async def test_who_reads_events_of_access_points_is_renewed_one_after_the_other(tmp_path: Path) -> None:
    """
    The next one ends when the one before does its work again; who joins meanwhile has all of them renewed once more.
    """
    readers = ("collector", "collector#2", "gateway")
    settings = msgspec.structs.replace(PATIENT, daemon_list=(*readers, "schedd"))
    admit = AdmitAccessPoint(name="ap1", people="A")
    async with office(tmp_path, settings) as it:
        await it.master_commands.admit_access_point(admit, daemon("iam"))
        await until(lambda: it.actors["collector"].starts == 2)
        await it.master_commands.admit_access_point(msgspec.structs.replace(admit, name="ap2"), daemon("iam"))
        for turn in (2, 3):
            for place, name in enumerate(readers):
                await until(lambda name=name, turn=turn: it.actors[name].starts == turn)  # type: ignore[misc]
                before = [turn] * (place + 1) + [turn - 1] * (len(readers) - place - 1)
                assert before == [it.actors[each].starts for each in readers]
                assert all(it.actors[each].pid for each in readers)
                it.daemons.supervisor(name).heard({"READY": "1"})
        await it.status("gateway", "running")
        assert 1 == it.actors["schedd"].starts
