"""The condor_* commands of administrators, for machines, daemons and shares, to the letter."""

import asyncio
import re
import socket
import time

import pytest

from kettle import pool as pools
from kettle.testing.commands.running import Said
from kettle.testing.patience import PATIENCE_S
from kettle.testing.throwaway_pool import ThrowawayPool
from kettle_wire.events import JobStarted, JobVacated

from .condor import WAITS, Condor
from .waiting import happened

RUNS = "executable = /bin/sleep\narguments = 600\nqueue\n"
WAITING = f"{WAITS}queue\n"
HOST = socket.gethostname()


async def comes(condor: Condor, expected: str, name: str, *words: str) -> None:
    """Wait until a command prints just that."""
    async with asyncio.timeout(PATIENCE_S):
        while (said := await condor(name, *words)).out != expected:
            assert 0 == said.status, said
            await asyncio.sleep(0.1)


# -- condor_drain and condor_vacate --------------------------------------------------------------------------------------


async def test_a_machine_is_drained_and_takes_work_again(condor: Condor, pool: ThrowawayPool) -> None:
    """
    By the name of a slot, as TARDIS does it, or of the machine; what cannot be is explained, with status 1.
    """
    draining = ("condor_status", f"slot1@{HOST}", "-af", "Draining", "DrainReason")
    await comes(condor, "false undefined\n", *draining)
    words = ("-graceful", "-reason", "a disk", f"slot1@{HOST}")
    assert Said(0, f"Sent request to drain {HOST}\n", "") == await condor("condor_drain", *words)
    await comes(condor, "true a disk\n", *draining)
    again = await condor("condor_drain", HOST)
    assert (1, "") == (again.status, again.out)
    assert again.err.startswith("condor_drain: ")
    wrong = await condor("condor_drain", "-cancel", "-request-id", "nonsense", HOST)
    assert (1, "") == (wrong.status, wrong.out)
    request = (await condor("condor_status", f"slot1@{HOST}", "-af", "DrainingRequestId")).out.strip()
    cancelled = await condor("condor_drain", "-cancel", "-request-id", request, HOST)
    assert Said(0, f"Sent request to cancel draining on {HOST}\n", "") == cancelled
    await comes(condor, "false undefined\n", *draining)
    never = await condor("condor_drain", "-check", "Cpus > 1000", HOST)
    assert (1, "") == (never.status, never.out)


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ((), "which machine?"),
        (("-peaceful", "x"), "condor_off -peaceful -daemon startd"),
        (("-restart-on-completion", "x"), "condor_restart"),
        (("-check", "((", "x"), "Parse error"),
        (("-request-id", "1", "x"), "-cancel"),
        (("no-machine",), "Can't find address for startd no-machine: the pool has no such startd; it has "),
        (("slot1@no-machine",), "Can't find address for startd no-machine"),
        (("a", "b"), "'b' is one machine too many"),
    ],
)
async def test_what_cannot_be_drained_is_explained(
    condor: Condor, words: tuple[str, ...], sentence: str
) -> None:
    said = await condor("condor_drain", *words)
    assert (1, "") == (said.status, said.out)
    assert sentence in said.err


@pytest.mark.parametrize(("words", "fast"), [((), False), (("-fast", "-all"), True), ((HOST,), False)])
async def test_jobs_leave_a_machine_which_takes_work_again(
    condor: Condor, pool: ThrowawayPool, words: tuple[str, ...], *, fast: bool
) -> None:
    job = f"{await condor.submitted(RUNS)}.0"
    await happened(pool.client, job, JobStarted)
    said = await condor("condor_vacate", *words)
    assert Said(0, f'Sent "Vacate-All-Claims{"-Fast" * fast}" command to startd {HOST}\n', "") == said
    await happened(pool.client, job, JobVacated)
    await happened(pool.client, job, JobStarted, times=2)


async def test_the_job_of_a_slot_leaves_it(condor: Condor, pool: ThrowawayPool) -> None:
    """Others on the machine go on."""
    one, other = [f"{await condor.submitted(RUNS)}.0" for _ in range(2)]
    for job in (one, other):
        await happened(pool.client, job, JobStarted)
    slot = (await condor("condor_q", one, "-af", "RemoteHost")).out.strip()
    await comes(condor, f"{one}\n", "condor_status", slot, "-af", "JobId")
    said = await condor("condor_vacate", slot)
    assert Said(0, f'Sent "Vacate-Claim" command to startd {slot}\n', "") == said
    await happened(pool.client, one, JobVacated)
    assert "0\n" == (await condor("condor_q", other, "-af", "NumVacates")).out
    for words, sentence in {
        (f"slot1@{HOST}",): "no job runs on it",
        ("slot7_7@nowhere",): "Can't find address for startd slot7_7@nowhere",
        ("-constraint", "Cpus > 1000"): "no slot meets the constraint",
        ("-addr", "x"): "-addr is not carried out",
    }.items():
        said = await condor("condor_vacate", *words)
        assert (1, "") == (said.status, said.out), words
        assert sentence in said.err, words


async def test_there_is_nothing_to_reschedule(condor: Condor) -> None:
    sentence = "tells the negotiator of each change by itself: nothing to do"
    assert Said(0, f"The schedd schedd {sentence}\n", "") == await condor("condor_reschedule")
    said = await condor("condor_reschedule", "nobody")
    assert (1, "") == (said.status, said.out)
    assert "nobody" in said.err
    assert "the pool has no such schedd" in said.err


# -- condor_userprio -----------------------------------------------------------------------------------------------------


async def test_priorities_are_shown_and_set(condor: Condor, pool: ThrowawayPool) -> None:
    """Each change is said with HTCondor's words, and seen in the tables."""
    for words, expected in {
        ("-setfactor", "alice", "100"): "The priority factor of alice was set to 100.000000\n",
        ("-setprio", f"alice@{HOST}", "2.5"): "The priority of alice was set to 2.500000\n",
        ("-setaccum", "alice", "7200"): "The Accumulated Usage of alice was set to 7200.000000\n",
        ("-setbegin", "alice", "1700000000"): "The Begin Usage Time of alice was set to 1700000000\n",
        ("-setlast", "alice", f"{int(time.time()) - 3600}"): None,
        ("-setfloor", "alice", "3"): "The floor of alice was set to 3\n",
        ("-setceil", "alice", "40"): "The ceiling of alice was set to 40\n",
        ("-setfactor", "bob", "10"): "The priority factor of bob was set to 10.000000\n",
    }.items():
        said = await condor("condor_userprio", *words)
        assert (0, "") == (said.status, said.err), said
        assert expected in {None, said.out}
    lines = (await condor("condor_userprio")).out.splitlines()
    assert re.fullmatch(r"Last Priority Update: \d\d/\d\d \d\d:\d\d", lines[0])
    assert ["Effective", "Priority", "Res", "Total", "Usage", "Time", "Since"] == lines[1].split()
    assert lines[2].startswith("User Name ")
    assert re.fullmatch(r"-{18,} -{12} -{9} -{6} -{12} -{10}", lines[3])
    alice = next(line.split() for line in lines if line.startswith("alice "))
    assert ["100.00", "0", "2.00"] == alice[2:5]
    assert 249 < float(alice[1]) <= 250
    assert re.fullmatch(r"0\+01:0\d", alice[5])
    assert not [line for line in lines if line.startswith("bob ")]  # who has never used anything
    assert re.match(r"Number of users: \d+ .* 1\+00:00$", lines[-1])
    everybody = (await condor("condor_userprio", "-allusers", "-all")).out
    assert re.search(r"^bob +5.00 +0.50 +10.00 +0 +0.00 +0.00 +never +never +never", everybody, re.MULTILINE)
    named = (await condor("condor_userprio", "bob", "-priority")).out.splitlines()
    assert ["bob", "5.00", "0.50", "10.00"] == named[4].split()
    fields = ("-af", "Name", "PriorityFactor", "Ceiling", "Floor")
    assert "alice 100.0 40.0 3.0\n" == (await condor("condor_userprio", "alice", *fields)).out
    assert '"Name": "bob"' in (await condor("condor_userprio", "bob", "-json")).out
    for option, whose, told in (
        ("-resetusage", ["alice"], "The accumulated usage of alice was reset\n"),
        ("-resetall", [], "The accumulated usage was reset for all users\n"),
        ("-delete", ["bob"], "The accountant record named bob was deleted\n"),
    ):
        assert Said(0, told, "") == await condor("condor_userprio", option, *whose)
    assert "alice 0.0\n" == (await condor("condor_userprio", "alice", "-af", "Name", "AccumulatedUsage")).out
    assert "bob" not in (await condor("condor_userprio", "-allusers")).out


async def test_what_a_user_has_is_shown(condor: Condor, pool: ThrowawayPool) -> None:
    job = f"{await condor.submitted(RUNS)}.0"
    await happened(pool.client, job, JobStarted)
    owner, slot = (await condor("condor_q", job, "-af", "Owner", "RemoteHost")).out.split()
    async with asyncio.timeout(PATIENCE_S):
        while slot not in (said := (await condor("condor_userprio", "-getreslist", owner)).out):
            await asyncio.sleep(0.1)
    assert said.splitlines()[0].startswith("Resource Name")
    assert "Number of Resources Used: 1" == said.splitlines()[-1]


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("-setprio", "alice", "low"), "-setprio takes a user and a number, not 'low'"),
        (("-setprio", "alice"), "requires another parameter"),
        (("-setfactor", "alice", "0.1"), "condor_userprio: "),
        (("-setprio", "alice", "1", "-delete", "alice"), "one at a time"),
        (("alice", "-resetall"), "either whom to show (alice) or what to change"),
        (("-activefrom", "13", "45", "x"), "-activefrom takes month, day and year"),
        (("-inputfile", "x"), "-inputfile is not carried out"),
    ],
)
async def test_what_no_accountant_can_do_is_explained(
    condor: Condor, words: tuple[str, ...], sentence: str
) -> None:
    said = await condor("condor_userprio", *words)
    assert (1, "") == (said.status, said.out)
    assert sentence in said.err


# -- condor_on, condor_off, condor_restart and condor_reconfig -----------------------------------------------------------


async def test_daemons_are_switched(condor: Condor, pool: ThrowawayPool) -> None:
    """One alone, by any of its names; the others do not notice."""
    schedd = pool.pid("schedd")
    for words, expected in (
        (
            ("condor_off", "-daemon", "startd", "-fast"),
            'Sent "Kill-Daemon-Fast" command for "STARTD" to local master\n',
        ),
        (
            ("condor_on", "-name", HOST, "-subsystem", "STARTD"),
            f'Sent "Spawn-Daemon" command for "STARTD" to master {HOST}\n',
        ),
    ):
        assert Said(0, expected, "") == await condor(*words)
        async with asyncio.timeout(PATIENCE_S):
            while (pool.daemon("startd").status == "running") != (words[0] == "condor_on"):
                await asyncio.sleep(0.05)
    before = pool.pid("startd")
    said = await condor("condor_restart", "-all", "-startd", "-peaceful")
    assert Said(0, f'Sent "Restart-Daemon-Peacefully" command for "STARTD" to master {HOST}\n', "") == said
    await pool.restarted("startd", after=before)
    assert Said(0, 'Sent "Reconfig" command to local master\n', "") == await condor("condor_reconfig")
    assert schedd == pool.pid("schedd")


def serves_again(pool: ThrowawayPool, name: str, before: int) -> bool:
    """A restart of the master: for a while there is no daemon that anybody knows of."""
    said = pools.state(pool.home)
    daemon = None if said is None else said.daemon(name)
    return daemon is not None and daemon.status == "running" and daemon.pid not in {0, before}


async def test_a_whole_host_is_switched(condor: Condor, pool: ThrowawayPool) -> None:
    """All of its daemons go and come; a restart takes the master's place as well, and jobs wait for it."""
    job = f"{await condor.submitted(WAITING)}.0"
    daemons = ("schedd", "shadow", "startd", "collector", "negotiator")
    off = await condor("condor_off", "-fast")
    assert Said(0, 'Sent "Kill-All-Daemons-Fast" command to local master\n', "") == off
    async with asyncio.timeout(PATIENCE_S):
        while any(pool.daemon(name).status != "off" for name in daemons):
            await asyncio.sleep(0.05)
    assert Said(0, 'Sent "Spawn-All-Daemons" command to local master\n', "") == await condor("condor_on")
    for name in daemons:
        await pool.restarted(name)
    before = {name: pool.pid(name) for name in daemons}
    again = await condor("condor_restart", "-fast", HOST)
    assert Said(0, f'Sent "Restart-Fast" command to master {HOST}\n', "") == again
    async with asyncio.timeout(PATIENCE_S):
        while not all(serves_again(pool, name, pid) for name, pid in before.items()):
            await asyncio.sleep(0.05)
    assert "1\n" == (await condor("condor_q", job, "-af", "JobStatus")).out


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("condor_off", "-master"), "the master stays"),
        (("condor_off", "nowhere.example"), "Can't find address for master nowhere.example"),
        (("condor_on", "-daemon", "oracle"), "this host has no daemon oracle"),
        (("condor_on", "-fast"), "Unrecognized argument -fast"),
        (("condor_restart", "-constraint", "false"), "no master meets the constraint (false)"),
        (("condor_reconfig", "-addr", "x"), "-addr is not carried out"),
    ],
)
async def test_what_no_master_can_do_is_explained(
    condor: Condor, words: tuple[str, ...], sentence: str
) -> None:
    said = await condor(*words)
    assert (1, "") == (said.status, said.out)
    assert sentence in said.err
