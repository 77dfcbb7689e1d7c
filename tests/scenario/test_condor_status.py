"""condor_status, and the names by which daemons are meant, in a pool that runs."""

import asyncio
import socket
from pathlib import Path

import pytest

from kettle.testing.commands.running import Said
from kettle.testing.patience import PATIENCE_S
from kettle.testing.throwaway_pool import ThrowawayPool
from kettle_wire.events import JobStarted

from .condor import WAITS, Condor
from .waiting import happened

HOST = socket.gethostname()
RUNS = "executable = /bin/sleep\narguments = 600\nqueue\n"


async def shows(condor: Condor, words: tuple[str, ...], expected: list[str]) -> None:
    """Wait until all that is expected is shown: ads come a little later than what they tell of."""
    missing = expected
    try:
        async with asyncio.timeout(PATIENCE_S):
            while missing:
                said = await condor("condor_status", *words)
                assert (0, "") == (said.status, said.err), (words, said)
                missing = [word for word in expected if word not in said.out]
                await asyncio.sleep(0.1 * bool(missing))
    except TimeoutError:
        pytest.fail(f"{words}: never showed {missing}")


async def test_the_pool_is_shown_in_every_view(condor: Condor, pool: ThrowawayPool) -> None:
    """Slots that run something, machines, and what each daemon says of itself."""
    job = f"{await condor.submitted(RUNS)}.0"
    await happened(pool.client, job, JobStarted)
    owner, slot = (await condor("condor_q", job, "-af", "Owner", "RemoteHost")).out.split()
    for words, expected in {
        ("-run",): [slot, "LINUX", owner, "schedd"],
        ("-state", slot): [slot, "Claimed", "Busy"],
        ("-compact",): [HOST, "1p"],
        ("-compact", "-claimed"): [HOST, owner],
        ("-server", "-limit", "1", "-sort", "Name"): [f"slot1@{HOST}", "LINUX", "[?????]"],
        ("-schedd", f"schedd@{HOST}"): ["schedd", HOST, "RunningJobs", "TotalHeldJobs"],
        ("-schedd", HOST): ["schedd", HOST],
        ("-submitters",): [owner, HOST, "HeldJobs"],
        ("-master",): [HOST, "25.0.1", "GB"],
        ("-negotiator",): ["negotiator", "LastCycleEnd"],
        ("-collector",): ["collector", HOST],
        ("-subsystem", "StartDaemon"): [HOST, "25.0.1"],
        ("-direct", HOST, "-schedd"): ["schedd", HOST],
        ("-any",): ["Scheduler", "Negotiator", "DaemonMaster"],
    }.items():
        await shows(condor, words, expected)


async def test_daemons_say_where_they_are(condor: Condor) -> None:
    """In HTCondor's words; the job event log has the address of the access point, too."""
    said = await condor(
        "condor_status", "-schedd", "-af", "Machine", "MyAddress", "ScheddIpAddr", "CondorVersion"
    )
    machine, address, again, version = said.out.split(maxsplit=3)
    assert (HOST, address) == (machine, again)
    assert address.startswith("<127.0.0.1:")
    assert address.endswith("?alias=schedd>")
    assert version.startswith("$CondorVersion: 25.")
    await condor.submitted(f"{WAITS}log = log\nqueue\n")
    assert Said(1, "Time expired.\n", "") == await condor("condor_wait", "-wait", "0", "log")
    assert f"Job submitted from host: {address}\n" in (condor.work / "log").read_text()


async def test_a_schedd_is_meant_by_name_and_host(condor: Condor) -> None:
    """As HTCondor's tools have it; another name is refused with those that there are."""
    job = f"{await condor.submitted(WAITS + 'queue')}.0"
    for name in ("schedd", f"schedd@{HOST}", HOST):
        assert Said(0, "1\n", "") == await condor("condor_q", "-name", name, job, "-af", "JobStatus"), name
    said = await condor("condor_q", "-name", f"other@{HOST}", job)
    assert (1, "") == (said.status, said.out)
    assert (
        f"Can't find address for schedd other@{HOST}: the pool has no such schedd; it has schedd" in said.err
    )


async def test_a_table_of_ones_own(condor: Condor, tmp_path: Path) -> None:
    """A print format file, for slots and for jobs."""
    (tmp_path / "slots.cpf").write_text(
        "SELECT NOHEADER\nMachine AS M WIDTH -4 TRUNCATE\nTotalCpus PRINTF %03d\nWHERE PartitionableSlot\nSUMMARY NONE\n"
    )
    said = await condor("condor_status", "-print-format", "slots.cpf")
    assert (0, f"{HOST[:4]:4}") == (said.status, said.out[:4]), said
    cluster = await condor.submitted(f"{WAITS}queue 2\n")
    (tmp_path / "jobs.cpf").write_text(
        "SELECT NOTITLE\nClusterId AS ID NOSUFFIX\nProcId AS ' ' NOPREFIX PRINTF .%-3d\nJobStatus AS ST PRINTAS JOB_STATUS\n"
        "GROUP BY ProcId DESCENDING\n"
    )
    said = await condor("condor_q", f"{cluster}", "-pr", "jobs.cpf")
    width = len(f"{cluster}")
    assert [
        f"{'ID':{max(width, 2)}}     ST",
        *(f"{cluster:<{max(width, 2)}}.{proc}   I " for proc in (1, 0)),
    ] == (said.out.splitlines())


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("-subsystem", "sched"), "-subsystem knows no 'sched'; do you mean schedd?"),
        (("-stat", "x"), "-stat may mean each of -state, -statistics"),
        (("-print-format", "none.cpf"), "Can't open print-format file: none.cpf"),
        (("-sort", "1 +"), "Parse error"),
        (("-compcat",), "Unrecognized argument -compcat; do you mean -compact?"),
    ],
)
async def test_what_cannot_be_shown_is_explained(
    condor: Condor, words: tuple[str, ...], sentence: str
) -> None:
    said = await condor("condor_status", *words)
    assert (1, "") == (said.status, said.out)
    assert sentence in said.err
