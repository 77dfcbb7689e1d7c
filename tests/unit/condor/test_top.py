"""condor_top: how busy daemons are, by what they say and what their processes use."""

import os
import subprocess
import sys

import pytest

from kettle_services.condor.commands import top
from kettle_services.condor.commands.top import Busy, duty_of, measure, table
from kettle_services.condor.errors import WordsError
from kettle_wire.ads.types import Ad


def daemon(name: str = "schedd", *, pid: int = 0) -> Busy:
    return Busy(name=name, machine="here", pid=pid, state="Running", since=0.0)


def test_a_process_is_measured_and_one_that_has_ended_is_not() -> None:
    """That works all the time takes a core, or what it gets of one."""
    with subprocess.Popen([sys.executable, "-c", "while True: pass"]) as worker:
        try:
            ended = daemon(pid=2**22 + 1)  # larger than any process id
            busy, idle = daemon(pid=worker.pid), daemon(pid=os.getpid())
            while not busy.cpu:  # what it gets within one measurement may be less than a tick of the kernel
                measure([busy, idle, ended], 0.3)
        finally:
            worker.kill()
    assert idle.memory is not None
    assert idle.memory > 1
    assert (None, 0) == (ended.cpu, ended.memory)


def test_a_daemon_is_told_from_others_of_its_role() -> None:
    """By its name; where a machine has several without it, nothing is said of it."""
    ads: list[Ad] = [
        {"Name": name, "Machine": machine, "RecentDaemonCoreDutyCycle": share}
        for name, machine, share in (("ap1", "here", 0.25), ("ap2", "here", 0.5), ("schedd", "there", 0.75))
    ]
    assert 0.5 == duty_of(daemon("schedd.ap2"), ads)
    assert duty_of(daemon("schedd"), ads) is None
    assert 0.25 == duty_of(daemon("schedd"), ads[:1])
    assert duty_of(daemon("schedd"), [{"Name": "ap1", "Machine": "here"}]) is None


def test_what_nobody_says_is_a_dash() -> None:
    """A daemon of another machine has no figures of its process."""
    one = daemon(pid=7)
    one.duty = 0.123
    titles, line = table([one])
    assert ["Daemon", "Machine", "PID", "State", "Duty", "CPU", "Memory", "Up"] == titles.split()
    assert ["schedd", "here", "7", "Running", "12.3%", "-", "-", "-"] == line.split()


@pytest.mark.parametrize("words", [["-d", "x"], ["-d", "0"], ["-d", "inf"], ["-s", "beauty"]])
def test_what_cannot_be_meant_is_refused(words: list[str]) -> None:
    """Before the pool is asked."""
    with pytest.raises(WordsError):
        top.run("condor_top", words)
