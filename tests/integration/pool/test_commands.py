"""A real master over dummy services and a real bus: what administrators switch, and what becomes of it."""

import os
import signal
from pathlib import Path

import msgspec
import pytest

from kettle import pool

from .conftest import DummyPool, alive, eventually


def log_of(dummies: DummyPool, name: str) -> str:
    path = dummies.home / "log" / f"{name}.log"
    return path.read_text() if path.exists() else ""


def change_settings(dummies: DummyPool, text: str) -> None:
    with (dummies.home / "kettle.toml").open("a") as file:
        file.write(text)


def test_one_daemon_is_switched_off_and_on(switched: DummyPool) -> None:
    """
    `kettle off` returns when the daemon has ended, the others go on, and `kettle on` returns when it runs again.
    """
    switched.up()
    first, second = switched.pid("first"), switched.pid("second")
    off = switched.kettle("off", "--daemon", "first")
    assert (0, "The first is off.\n") == (off.status, off.out)
    assert not alive(first)
    assert ("off", 0) == (switched.daemon("first").status, switched.daemon("first").pid)
    assert second == switched.pid("second")
    assert "nothing to do" in switched.kettle("off", "--daemon", "first").out
    on = switched.kettle("on", "--daemon", "first")
    assert (0, "The first is on.\n") == (on.status, on.out)
    assert switched.pid("first") not in {0, first}
    assert second == switched.pid("second")


def test_the_whole_host_is_switched_off_but_its_master(switched: DummyPool) -> None:
    """Without a daemon everything is meant; the master and its servers stay and hear `kettle on`."""
    master = switched.up().state.pid
    assert switched.kettle("off", "--fast").status == 0
    assert ["off", "off"] == [switched.daemon(name).status for name in ("first", "second")]
    assert switched.pid("nats")
    assert switched.kettle("on").status == 0
    assert switched.pid("first")
    assert switched.pid("second")
    state = pool.state(switched.home)
    assert state is not None
    assert master == state.pid


def test_what_is_off_stays_off(switched: DummyPool) -> None:
    """
    A master that is killed, or restarted, does not start what an administrator has switched off; `down` forgets it.
    """
    started = switched.up()
    switched.kettle("off", "--daemon", "first")
    os.kill(started.state.pid, signal.SIGKILL)
    assert eventually(lambda: not alive(started.state.pid))
    switched.up()
    assert switched.daemon("first").status == "off"
    assert switched.pid("second")
    assert switched.kettle("restart").status == 0
    assert switched.daemon("first").status == "off"
    refused = switched.kettle("restart", "--daemon", "first")
    assert refused.status == 1
    assert "kettle on --daemon first" in refused.err
    pool.down(switched.home)
    switched.up()
    assert switched.pid("first")


def test_what_a_startd_leaves_its_master_ends(worker: DummyPool) -> None:
    """
    When a startd that is switched off had to be killed, its starters and jobs end too; those of others do not.
    """
    worker.up(TEST_STUBBORN="1", MASTER_SHUTDOWN_FAST_TIMEOUT="0.3")
    starter, other = worker.noted("startd.starter"), worker.noted("second.starter")
    assert worker.kettle("off", "--daemon", "startd", "--fast").status == 0
    assert worker.daemon("startd").last_exit == "signal 9"
    assert eventually(lambda: not alive(starter))
    assert alive(other)


def test_one_daemon_is_restarted(switched: DummyPool) -> None:
    """The command returns when another process serves; an end that was asked for is followed by no wait."""
    switched.up(MASTER_BACKOFF_CONSTANT="1000")
    first, second = switched.pid("first"), switched.pid("second")
    restart = switched.kettle("restart", "--daemon", "first")
    assert (0, "The first is running again.\n") == (restart.status, restart.out)
    assert switched.pid("first") not in {0, first}
    assert second == switched.pid("second")


def test_a_host_is_restarted_with_its_master(switched: DummyPool) -> None:
    """
    The master takes its own place: the same process, started later, with settings that only a start reads.
    """
    before = switched.up().state
    first, nats = switched.pid("first"), switched.pid("nats")
    change_settings(switched, '\n[kettle]\ntrace_file = ""\n')
    restart = switched.kettle("restart", "--fast")
    assert restart.status == 0, restart.err
    after = pool.state(switched.home)
    assert after is not None
    assert before.pid == after.pid
    assert after.started > before.started
    assert switched.pid("first") not in {0, first}
    assert switched.pid("nats") not in {0, nats}
    assert not pool.up(switched.home).new
    assert pool.down(switched.home).was_running


def test_changed_settings_come_into_use(switched: DummyPool) -> None:
    """
    A service whose settings are the same goes on; one whose settings have changed is another process with the new ones.
    """
    switched.up()
    first = switched.pid("first")
    same = switched.kettle("reconfig", "--daemon", "first")
    assert (0, "The first: nothing to do, unchanged.\n") == (same.status, same.out)
    assert first == switched.pid("first")
    change_settings(switched, '\n[kettle]\nlog_level = "warning"\n')
    changed = switched.kettle("reconfig", "--daemon", "first")
    assert (0, "The first is running with its new settings.\n") == (changed.status, changed.out)
    assert switched.pid("first") not in {0, first}
    assert "drains" not in log_of(switched, "first")


def test_settings_that_cannot_be_used_are_refused(switched: DummyPool) -> None:
    """The mistake is told once to who asked, with its place in the file, and nothing is restarted."""
    switched.up()
    first = switched.pid("first")
    change_settings(switched, "\n[kettle]\nlog_level = 3\n")
    refused = switched.kettle("reconfig")
    assert refused.status == 1
    assert refused.err.count("[kettle] log_level") == 1
    assert refused.err.startswith(f"{switched.home / 'kettle.toml'}:")
    assert first == switched.pid("first")
    assert "goes on with the settings as they were" in log_of(switched, "master")


def test_the_master_takes_on_what_it_can_at_once(switched: DummyPool) -> None:
    """A list of administrators is used at once, and what needs a restart is named."""
    switched.up()
    text = (switched.home / "kettle.toml").read_text()
    (switched.home / "kettle.toml").write_text(
        text.replace("[master]\n", '[master]\nname = "another"\nadministrators = ["grace"]\n')
    )
    said = switched.kettle("reconfig").out
    assert "The master: done; used when the host is restarted (kettle restart): name." in said
    refused = switched.kettle("reconfig")
    assert refused.status == 1
    assert "is not in administrators of [master]" in refused.err


def test_signals_do_what_commands_do(dummies: DummyPool) -> None:
    """Without a bus SIGHUP has the host read its settings, and one that has changed comes into use."""
    started = dummies.up()
    first = dummies.pid("first")
    change_settings(dummies, '\n[kettle]\nlog_level = "warning"\n')
    os.kill(started.state.pid, signal.SIGHUP)
    assert eventually(lambda: dummies.pid("first") not in {0, first})
    assert dummies.daemon("first").last_exit == "status 75 (to use changed settings)"
    state = pool.state(dummies.home)
    assert state is not None
    assert started.state.pid == state.pid


def test_only_administrators_are_heard(switched: DummyPool) -> None:
    """
    Who is not on the list is refused, with the list and where it is set, although the bus lets the command through.
    """
    switched.up(MASTER_ADMINISTRATORS='["grace"]')
    refused = switched.kettle("off", "--daemon", "first")
    assert refused.status == 1
    assert "is not in administrators of [master]" in refused.err
    assert switched.pid("first")


def test_an_unknown_daemon_is_refused(switched: DummyPool) -> None:
    """Nothing is done, and what there is is named; the servers are no daemons to be switched."""
    switched.up()
    for name in ("third", "nats"):
        refused = switched.kettle("off", "--daemon", "first", "--daemon", name)
        assert refused.status == 1
        assert f"this host has no daemon {name}; it has: first, second" in refused.err
    assert switched.pid("first")


def test_a_host_that_is_not_there_is_told(switched: DummyPool) -> None:
    """A command for a host without a master ends with a sentence after its patience."""
    switched.up()
    lost = switched.kettle("off", "--patience", "5", "nowhere")
    assert lost.status == 1
    assert "the master 'nowhere' did not answer" in lost.err


def test_a_master_has_a_name_of_its_own(switched: DummyPool) -> None:
    """A command reaches any host by its master's name."""
    switched.up(MASTER_NAME="node17.example.org")
    assert switched.kettle("restart", "--daemon", "first", "node17.example.org").status == 0
    assert switched.daemon("first").starts == 2


def test_a_command_can_be_for_a_program(switched: DummyPool) -> None:
    """With `--json` standard output is one JSON document."""
    switched.up()
    said = switched.kettle("off", "--daemon", "first", "--json").out
    assert [{"daemon": "first", "outcome": "begun", "why": "", "in_time": True}] == msgspec.json.decode(said)


def test_a_hung_service_leaves_its_stacks(dummies: DummyPool) -> None:
    """
    A stopped service is found by its silence, writes where it was, and is replaced; the file is in the log directory.
    """
    dummies.up(MASTER_NOT_RESPONDING_TIMEOUT="3", MASTER_ABORT_TIMEOUT="600")
    first = dummies.pid("first")
    os.kill(first, signal.SIGSTOP)
    assert eventually(lambda: dummies.pid("first") not in {0, first})
    daemon = dummies.daemon("first")
    assert (1, "signal 6 (hung)", 2) == (daemon.hangs, daemon.last_exit, daemon.starts)
    [kept] = (dummies.home / "log").glob("first.hang.*.txt")
    said = kept.read_text()
    assert "State:\tT (stopped)" in said
    assert "Fatal Python error: Aborted" in said
    assert "asyncio" in said
    assert str(kept) in log_of(dummies, "master")


def test_a_service_that_hangs_too_deep_for_its_stacks_is_killed(dummies: DummyPool) -> None:
    """One that does not end although it is aborted has its time, and is then killed."""
    dummies.up(TEST_DEAF="1", MASTER_NOT_RESPONDING_TIMEOUT="3", MASTER_ABORT_TIMEOUT="0.3")
    first = dummies.pid("first")
    os.kill(first, signal.SIGSTOP)
    assert eventually(lambda: dummies.pid("first") not in {0, first})
    assert dummies.daemon("first").last_exit == "signal 9 (hung)"


def script(path: Path, text: str) -> str:
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return msgspec.json.encode([str(path), "argument"]).decode()


def test_the_host_is_tuned_before_the_services_start(dummies: DummyPool, tmp_path: Path) -> None:
    """
    The program runs with its arguments, its output is kept, and no service is there before it has ended.
    """
    command = script(tmp_path / "tune", f'echo "tuned $1"; ls {dummies.home}/log')
    dummies.up(MASTER_LINUX_KERNEL_TUNING_SCRIPT=command)
    said = (dummies.home / "log" / "kernel-tuning.log").read_text()
    assert said.startswith("tuned argument\n")
    assert "first.log" not in said
    assert "tune: done" in log_of(dummies, "master")


@pytest.mark.parametrize(
    ("text", "seconds", "how"),
    [
        ("exit 3", "600", "status 3"),
        ("sleep 1000", "0.2", "killed, it took longer than 0.2 s"),
        ("kill -9 $$", "600", "signal 9"),
    ],
)
def test_a_host_that_cannot_be_tuned_works(
    dummies: DummyPool, tmp_path: Path, text: str, seconds: str, how: str
) -> None:
    """A program that fails or hangs is told of, and the services start all the same."""
    command = script(tmp_path / "tune", text)
    dummies.up(MASTER_LINUX_KERNEL_TUNING_SCRIPT=command, MASTER_KERNEL_TUNING_TIMEOUT=seconds)
    assert dummies.pid("first")
    assert f"tune: {how}" in log_of(dummies, "master")


def test_a_tuning_program_that_is_not_there_is_told(dummies: DummyPool) -> None:
    """A path to nothing stops nothing."""
    dummies.up(MASTER_LINUX_KERNEL_TUNING_SCRIPT='["/nonexistent/tune"]')
    assert dummies.pid("first")
    assert "/nonexistent/tune: cannot be started: No such file" in log_of(dummies, "master")


ROLLS_IN = {"KETTLE_MASTER_CHECK_NEW_EXEC_INTERVAL": "0.1", "KETTLE_MASTER_NEW_BINARY_DELAY": "0.3"}


def version(dummies: DummyPool) -> str:
    state = pool.state(dummies.home)
    return state.version if state is not None and state.ready else ""


def test_a_new_version_is_rolled_in(dummies: DummyPool) -> None:
    """
    When another version has been installed, master and services are restarted with it, the master as the same process.
    """
    dummies.install("8.0")
    dummies.environ |= ROLLS_IN
    before = dummies.up().state
    assert version(dummies) == "8.0"
    first = dummies.pid("first")
    dummies.install("9.0")
    assert eventually(lambda: version(dummies) == "9.0")
    after = pool.state(dummies.home)
    assert after is not None
    assert before.pid == after.pid
    assert eventually(lambda: dummies.pid("first") not in {0, first})
    assert "Kettle 9.0 is installed: restarting from 8.0, graceful" in log_of(dummies, "master")


def test_a_new_version_can_wait_for_a_person(dummies: DummyPool) -> None:
    """With NEVER it is only told of, once, with the command that uses it."""
    dummies.install("8.0")
    dummies.environ |= ROLLS_IN
    dummies.up(MASTER_NEW_BINARY_RESTART="NEVER")
    first = dummies.pid("first")
    dummies.install("9.0")
    assert eventually(lambda: "use it with: kettle restart" in log_of(dummies, "master"))
    assert first == dummies.pid("first")
    assert version(dummies) == "8.0"


def test_a_broken_version_is_not_used(dummies: DummyPool) -> None:
    """A version that would not even load is refused with its own last words, and what runs goes on."""
    dummies.install("8.0")
    dummies.environ |= ROLLS_IN
    dummies.up()
    first = dummies.pid("first")
    master = dummies.home.parent / "dummies" / "kettle_services" / "master"
    master.mkdir()
    (master / "__init__.py").write_text("raise ImportError('half of it is missing')\n")
    dummies.install("9.0")
    assert eventually(lambda: "half of it is missing" in log_of(dummies, "master"))
    assert first == dummies.pid("first")
