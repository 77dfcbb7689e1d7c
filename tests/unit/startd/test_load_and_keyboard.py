"""What a startd sees of the machine's owner."""

import os
import pty
import signal
from pathlib import Path

from kettle_services.startd.domain.state.claim import Now
from kettle_services.startd.domain.state.policy_expressions import PolicyExpressions
from kettle_services.startd.policy.load_and_keyboard import NEVER_USED, Observer

NOW = Now(clock=100.0, time=1_800_000_000.0)


def touched(path: Path, seconds_ago: float) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.touch()
    os.utime(path, (NOW.time - seconds_ago, NOW.time))


def observer(tmp_path: Path, accounts: range = range(0), **policy: str) -> Observer:
    (tmp_path / "dev").mkdir(exist_ok=True)
    return Observer(
        PolicyExpressions(policy),
        accounts=accounts,
        console=("tty[0-9]*", "input/*"),
        dev=tmp_path / "dev",
        proc=tmp_path / "proc",
    )


def test_the_last_touch_of_any_device_counts(tmp_path: Path) -> None:
    """A remote login is no use of the console; what is no terminal counts for nothing."""
    touched(tmp_path / "dev" / "tty1", 500)
    touched(tmp_path / "dev" / "input" / "event0", 300)
    touched(tmp_path / "dev" / "pts" / "3", 20)
    touched(tmp_path / "dev" / "pts" / "ptmx", 1)
    touched(tmp_path / "dev" / "sda", 1)

    seen = observer(tmp_path).observe([], NOW)

    assert (20, 300) == (seen["KeyboardIdle"], seen["ConsoleIdle"])


def test_terminals_of_slots_are_no_use_of_the_machine(tmp_path: Path) -> None:
    """A shell beside a job must not suspend it, because its user sits elsewhere."""
    touched(tmp_path / "dev" / "pts" / "3", 20)

    seen = observer(tmp_path, range(os.getuid(), os.getuid() + 1)).observe([], NOW)

    assert seen["KeyboardIdle"] == NEVER_USED


def test_nor_are_terminals_below_starters(tmp_path: Path) -> None:
    """Where jobs run as we do, their terminals are known by the processes that sit there."""
    pid, ours = pty.fork()
    if pid == 0:
        os.write(1, b"x")
        signal.pause()
        os._exit(0)
    try:
        assert os.read(ours, 1) == b"x"
        (tmp_path / "dev" / "pts").mkdir(parents=True)
        (tmp_path / "dev" / "pts" / "3").symlink_to(Path(f"/proc/{pid}/fd/0").readlink())
        mine, others = (observer(tmp_path).observe(starters, NOW) for starters in ([os.getpid()], []))
    finally:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
        os.close(ours)

    assert mine["KeyboardIdle"] == NEVER_USED
    assert others["KeyboardIdle"] != NEVER_USED


def test_a_machine_that_nobody_can_touch_is_never_in_use(tmp_path: Path) -> None:
    """Policies that wait for idleness do not wait endlessly there."""
    seen = observer(tmp_path).observe([], NOW)

    assert (NEVER_USED, NEVER_USED) == (seen["KeyboardIdle"], seen["ConsoleIdle"])


def test_a_device_of_the_future_was_touched_now(tmp_path: Path) -> None:
    """A clock that was set back makes nothing negative."""
    touched(tmp_path / "dev" / "tty1", -50)

    assert observer(tmp_path).observe([], NOW)["KeyboardIdle"] == 0


def test_the_load_is_the_kernel_s(tmp_path: Path) -> None:
    """And is not there where it cannot be read: then expressions that ask for it are undefined."""
    assert "LoadAvg" not in observer(tmp_path).observe([], NOW)
    (tmp_path / "proc").mkdir()
    (tmp_path / "proc" / "loadavg").write_text("1.25 0.80 0.50 1/100 4242\n")

    seen = observer(tmp_path).observe([], NOW)

    assert (1.25, 1.25) == (seen["LoadAvg"], seen["TotalLoadAvg"])
    assert "CondorLoadAvg" not in seen


def test_the_jobs_load_is_measured_if_somebody_asks(tmp_path: Path) -> None:
    """It begins at nothing."""
    asking = observer(tmp_path, SUSPEND="LoadAvg - CondorLoadAvg > 0.5")

    assert asking.observe([os.getpid()], NOW)["CondorLoadAvg"] == 0.0
    load = asking.observe([os.getpid()], Now(clock=105.0, time=NOW.time + 5))["CondorLoadAvg"]
    assert isinstance(load, float)
    assert 0.0 <= load <= float(os.cpu_count() or 1)
