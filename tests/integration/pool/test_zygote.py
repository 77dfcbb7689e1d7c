"""Services are forked from a zygote of the master's, and nobody can tell them from executed ones."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import suppress
from pathlib import Path

import pytest

from kettle.execution.system.linux import children_of, parent_of
from kettle_services.master import configuration_check
from kettle_services.master.domain.start_order import DAEMON_LIST
from kettle_services.master.zygote.client import PATIENCE_S, ServiceZygote
from kettle_services.master.zygote.identity import ROOM

from .conftest import DummyPool, alive, eventually


def shown(pid: int, what: str) -> list[str]:
    """The parts of a file in `/proc` that are not empty."""
    return [part.decode() for part in Path(f"/proc/{pid}/{what}").read_bytes().split(b"\0") if part]


def opened_by(pid: int) -> set[str]:
    """What a process has open, without what it closes meanwhile."""
    found = set[str]()
    for path in Path(f"/proc/{pid}/fd").iterdir():
        with suppress(FileNotFoundError):
            found.add(str(path.readlink()))
    return found


def zygote_of(dummies: DummyPool, master: int) -> int:
    """The process that forks the services."""
    assert dummies.pid("first")
    return next(
        pid for pid in children_of(master) if "kettle_services.master.zygote" in shown(pid, "cmdline")
    )


def test_a_forked_service_is_shown_as_the_one_that_it_is(dummies: DummyPool) -> None:
    """
    It has its command line, environment, session, directory and log, and nothing of the zygote's; faults that a test wants of
    it are its own as well.
    """
    fault = {"KETTLE_FAULT_POINTS": "append.before=kill"}
    dummies.environ["KETTLE_MASTER_ENVIRONMENT"] = json.dumps({"first": fault})
    started = dummies.up()
    first = dummies.pid("first")
    assert zygote_of(dummies, started.state.pid) == parent_of(first)
    assert shown(first, "cmdline") == [sys.executable, "-P", "-m", "kettle_services.first"]
    environ = dict(part.split("=", 1) for part in shown(first, "environ"))
    assert ROOM not in environ
    assert "nats://127.0.0.1:1" == environ["KETTLE_NATS_URL"]
    assert fault.items() <= environ.items()
    assert first == os.getsid(first)
    assert dummies.home == Path(f"/proc/{first}/cwd").readlink()
    assert dummies.home / "log" / "first.log" == Path(f"/proc/{first}/fd/1").readlink()
    lifeline = environ["KETTLE_LIFELINE_FD"]
    zygote = parent_of(first)
    assert zygote is not None
    shared = Path(f"/proc/{started.state.pid}/fd/{lifeline}").readlink()
    assert shared == Path(f"/proc/{first}/fd/{lifeline}").readlink()
    opened = opened_by(zygote)
    line = next(path for path in opened if path.startswith("socket:"))
    assert line not in opened_by(first)


def test_services_go_on_when_their_zygote_is_killed(dummies: DummyPool) -> None:
    """
    No service ends with the zygote; the end of one that it had forked is noticed all the same, and the next comes from another.
    """
    master = dummies.up().state.pid
    first, second, zygote = dummies.pid("first"), dummies.pid("second"), zygote_of(dummies, master)
    os.kill(zygote, signal.SIGKILL)
    assert eventually(lambda: not alive(zygote))
    assert (first, second) == (dummies.pid("first"), dummies.pid("second"))
    os.kill(first, signal.SIGKILL)
    assert eventually(lambda: dummies.runs_anew("first", first))
    assert zygote_of(dummies, master) == parent_of(dummies.pid("first"))
    assert second == dummies.pid("second")
    assert 1 == dummies.daemon("second").starts


def test_a_service_comes_from_what_is_installed(dummies: DummyPool) -> None:
    """
    After another version was installed, a service that starts again has its code, while the others still run the old.
    """
    dummies.install("1")
    dummies.up()
    first, second = dummies.pid("first"), dummies.pid("second")
    program = dummies.home.parent / "dummies" / "kettle_services" / "first" / "__main__.py"
    text = program.read_text().replace('"drains\\n"', '"drains otherwise\\n"')
    program.write_text(text)
    dummies.install("2")
    os.kill(first, signal.SIGKILL)
    assert eventually(lambda: dummies.runs_anew("first", first))
    first = dummies.pid("first")
    os.kill(first, signal.SIGTERM)
    assert eventually(lambda: dummies.runs_anew("first", first))
    assert "drains otherwise" in (dummies.home / "log" / "first.log").read_text()
    os.kill(second, signal.SIGUSR1)  # ends with status 99, which its old zygote still tells
    assert eventually(lambda: dummies.daemon("second").status == "left")


def test_what_cannot_be_forked_is_executed(dummies: DummyPool) -> None:
    """
    A service that cannot be loaded into the zygote, or has variables that modules may read, is a program of its own.
    """
    program = dummies.home.parent / "dummies" / "kettle_services" / "first" / "__main__.py"
    program.write_text(
        f"import sys\nassert 'kettle_services.master.zygote' not in sys.orig_argv\n{program.read_text()}"
    )
    dummies.environ["KETTLE_MASTER_ENVIRONMENT"] = json.dumps({"second": {"TZ": "UTC"}})
    master = dummies.up().state.pid
    assert master == parent_of(dummies.pid("first")) == parent_of(dummies.pid("second"))
    assert "it cannot be loaded: AssertionError" in (dummies.home / "log" / "master.log").read_text()


async def test_a_zygote_that_does_not_answer_is_replaced(tmp_path: Path) -> None:
    """
    One that is stopped is ended after a while, its caller helps itself, and the next one gets a fork again.
    """
    zygote = ServiceZygote([], os.environ, tmp_path, fds=[], patience=0.2)
    output = os.open("/dev/null", os.O_WRONLY)
    try:
        await zygote.warm()
        stopped = zygote.pid
        os.kill(stopped, signal.SIGSTOP)
        assert await zygote.launch("asyncio", os.environ, tmp_path, output) is None
        assert eventually(lambda: not alive(stopped))
        zygote.patience = PATIENCE_S
        forked = await zygote.launch("asyncio", os.environ, tmp_path, output)
        assert forked is not None
        assert "kettle_services.master.zygote" in shown(forked.pid, "cmdline")  # it waits, and is nothing yet
        forked.begin()
        assert 0 == await forked.wait()  # a Python prompt that finds nothing to read
    finally:
        await zygote.close()
        os.close(output)


def test_all_services_can_be_forked() -> None:
    """What they load starts no thread and opens nothing."""
    modules = ["uvloop", "nkeys", *(f"kettle_services.{role}.__main__" for role in DAEMON_LIST)]
    program = (
        "import importlib, os, sys\n"
        "for module in sys.argv[1:]: importlib.import_module(module)\n"
        "print(len(os.listdir('/proc/self/task')), *sorted(os.listdir('/proc/self/fd')))\n"
    )
    said = subprocess.run(
        [sys.executable, "-P", "-c", program, *modules],
        env={**os.environ, "OPENBLAS_NUM_THREADS": "1"},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=True,
    ).stdout.split()
    assert ["1", "0", "1", "2", "3"] == said  # 3 is the look at what is open


@pytest.fixture
async def zygote(tmp_path: Path) -> AsyncIterator[ServiceZygote]:
    made = ServiceZygote(["kettle_services.negotiator"], os.environ, tmp_path, fds=[])
    try:
        yield made
    finally:
        await made.close()


@pytest.mark.parametrize("forks", [True, False])
async def test_the_configuration_is_checked_with_the_masters_environment(
    zygote: ServiceZygote, forks: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All that is wrong is told, and nothing of what is right, whether the check was forked or executed."""
    by = zygote if forks else None
    monkeypatch.setenv("KETTLE_HOME", str(tmp_path))
    assert [] == await configuration_check.problems(by)
    (tmp_path / "kettle.toml").write_text("[negotiator]\ninterval = -1\n[schedd]\nleese = 5\n")
    first, second = (str(each) for each in await configuration_check.problems(by))
    assert (True, True) == ("interval" in first, "leese" in second)
    assert forks == (zygote.pid != 0)


async def test_a_check_that_ends_otherwise_is_told_and_refuses_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Each service sees for itself then."""
    (tmp_path / "sitecustomize.py").write_text("raise SystemExit('this Python is broken')\n")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    assert [] == await configuration_check.problems(None)
    assert "the configuration could not be checked: " in caplog.text
    assert "this Python is broken" in caplog.text
