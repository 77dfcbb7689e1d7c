"""
Jobs that submit jobs: the commands of HTCondor and ours in a running job, as its owner, with nothing to copy out of it.
"""

import asyncio
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import msgspec
import pytest

from kettle.bus.nats import NatsBus
from kettle.bus.ports import Bus, RefusedError
from kettle.client import select
from kettle.testing.patience import PATIENCE_S
from kettle.testing.throwaway_pool import ThrowawayPool
from kettle_wire.ads.types import Ad, Expr
from kettle_wire.codes import Universe
from kettle_wire.commands import schedd
from kettle_wire.commands.schedd import EditJobs, JobCommand, QueryJobs, Submit
from kettle_wire.events import JobCompleted, JobStarted
from kettle_wire.identity import daemon
from kettle_wire.jobs import JobId
from kettle_wire.subjects import Subjects

from .waiting import happened

PARENT = """\
#!/bin/sh
set -ex
printf 'executable = /bin/sh\\narguments = "-c true"\\nlog = %s/child.log\\nqueue\\n' "$DIRECTORY" > child.sub
condor_submit -terse child.sub > submitted
child=$(cut -d' ' -f1 submitted)
condor_wait "$DIRECTORY/child.log"
until condor_history "$child" -af ExitCode | grep -x 0; do :; done
printf 'executable = /bin/sleep\\narguments = 1000\\nrequirements = false\\nqueue 2\\n' | condor_submit
condor_q -af:j JobStatus Owner > seen
condor_hold "${child%.*}" && exit 1
condor_rm -all -constraint 'Cmd == "/bin/sleep"' || condor_rm -constraint 'Cmd == "/bin/sleep"'
condor_status -af Machine | grep .
kettle q --json > ours
kettle wait 1 2> refused && exit 1
cat seen
"""


@pytest.fixture(scope="module")
def configuration() -> dict[str, Any]:
    # Jobs run this Python, which an account of a slot may not reach.
    return {"settings": {"startd": {"job_account": "own"}}}


def described(place: Path, work: Path, script: str, *lines: str) -> str:
    """A job of this script, which finds the commands."""
    (work / "parent.sh").write_text(script)
    (work / "parent.sh").chmod(0o755)
    path = f"{place}:{Path(sys.executable).parent}:/usr/bin:/bin"
    return "\n".join((
        "executable = parent.sh", "output = out", "error = err",
        f'environment = "PATH={path} DIRECTORY={work}"', *lines, "queue\n",
    ))  # fmt: skip


async def completed(pool: ThrowawayPool, description: str, work: Path) -> tuple[JobId, JobCompleted]:
    """Run it to its end."""
    job = JobId((await pool.client.submit(description, cwd=work)).cluster, 0)
    async with asyncio.timeout(PATIENCE_S):
        await pool.client.wait(select(job.cluster))
    (found,) = [each.event for each in await pool.client.events(job) if isinstance(each.event, JobCompleted)]
    return job, found


@asynccontextmanager
async def shadow_of(pool: ThrowawayPool) -> AsyncGenerator[Bus]:
    """The bus, with the credential of the pool's shadow."""
    own = pool.home / "credentials" / "shadow.creds"
    async with NatsBus.connect(
        pool.client.pool.nats_url,
        subjects=Subjects(pool.client.pool.pool),
        identity=daemon("shadow"),
        credentials=str(own) if own.exists() else pool.client.pool.credentials,
        name="hostile",
        patience=PATIENCE_S,
    ) as bus:
        yield bus


async def test_a_job_submits_looks_and_removes(pool: ThrowawayPool, place: Path, tmp_path: Path) -> None:
    """With the same commands as outside; what it made belongs to its owner."""
    job, end = await completed(pool, described(place, tmp_path, PARENT, "want_pool_access = true"), tmp_path)

    assert 0 == end.exit.code, (tmp_path / "err").read_text()
    me = pool.client.pool.user
    children = [f"{job.cluster + 2}.0 1 {me}", f"{job.cluster + 2}.1 1 {me}"]
    assert [f"{job} 2 {me}", *children] == (tmp_path / "out").read_text().splitlines()[-3:]
    assert [] == await pool.client.jobs(select())


SPOOLS = """\
#!/bin/sh
set -ex
head -c 3000000 /dev/urandom > data
printf '#!/bin/sh\\nsha256sum < data\\n' > worker.sh
printf 'executable = worker.sh\\ntransfer_input_files = data\\noutput = sum\\nqueue\\n' > worker.sub
worker=$(condor_submit -spool -terse worker.sub | cut -d' ' -f1)
sha256sum < data > expected
rm data worker.sh worker.sub
until condor_q "$worker" -af JobStatus | grep -x 4; do sleep 0.2; done
condor_transfer_data "$worker"
cmp sum expected
"""


async def test_a_job_sends_files_of_its_sandbox_along(
    pool: ThrowawayPool, place: Path, tmp_path: Path
) -> None:
    """More than one message of them; and it fetches the results into its sandbox."""
    _, end = await completed(pool, described(place, tmp_path, SPOOLS, "want_pool_access = true"), tmp_path)
    assert 0 == end.exit.code, (tmp_path / "err").read_text()


async def test_a_job_that_did_not_ask_for_it_is_not_in_the_pool(
    pool: ThrowawayPool, place: Path, tmp_path: Path
) -> None:
    """Its commands find no pool, and its starter takes no command from others."""
    script = (
        "#!/bin/sh\nenv | grep KETTLE_NATS_URL && exit 1\n"
        "HOME=$PWD KETTLE_HOME=$PWD/none condor_q && exit 2\n"
        "KETTLE_NATS_URL=job:$_CONDOR_CHIRP_CONFIG condor_q\nexit $?\n"
    )
    _, end = await completed(pool, described(place, tmp_path, script), tmp_path)

    assert (1, None) == (end.exit.code, end.exit.signal)
    assert "want_pool_access = true" in (tmp_path / "err").read_text()


async def test_a_machine_cannot_give_what_the_submitter_did_not(pool: ThrowawayPool, tmp_path: Path) -> None:
    """
    The queue itself looks at its job, whatever a shadow passes on, and knows what jobs may not ask for at all.
    """
    without = await pool.client.submit("executable = /bin/sleep\narguments = 100\nqueue\n", cwd=tmp_path)
    allowed = await pool.client.submit(
        "executable = /bin/sleep\narguments = 100\nwant_pool_access = true\nqueue\n", cwd=tmp_path
    )
    for submitted in (without, allowed):
        await happened(pool.client, JobId(submitted.cluster, 0), JobStarted)
    question = msgspec.msgpack.encode(QueryJobs(select=select(), projection=["Owner"]))
    async with shadow_of(pool) as bus:

        async def asked(
            cluster: int, verb: str = "query_jobs", attempt: int = 1, body: bytes = question
        ) -> str:
            command = JobCommand(job=JobId(cluster, 0), attempt=attempt, verb=verb, body=body)
            try:
                await bus.call(schedd.JOB_COMMAND, "schedd", command, deadline=PATIENCE_S)
            except RefusedError as error:
                return error.code
            return ""

        assert "" == await asked(allowed.cluster)
        assert "denied" == await asked(without.cluster)
        assert "not_running" == await asked(allowed.cluster, attempt=2)
        assert "not_running" == await asked(4711)
        assert "malformed" == await asked(allowed.cluster, body=b"\xc1")
        for verb in ("access", "run_now", "report", "matched", "sync", "job_command", "none"):
            assert "denied" == await asked(allowed.cluster, verb)
        for number, universe in enumerate((Universe.SCHEDULER, Universe.LOCAL, Universe.VANILLA)):
            ad: Ad = {"Cmd": "/bin/true", "JobUniverse": int(universe), "Requirements": Expr("false")}
            submit = msgspec.msgpack.encode(Submit(id=f"{number}", ad=ad, columns=[], rows=[[]]))
            refused = "" if universe is Universe.VANILLA else "unacceptable"
            assert refused == await asked(allowed.cluster, "submit", body=submit)
        here = await pool.client.submit(
            "universe = local\nexecutable = /bin/true\nhold = true\nqueue\n", cwd=tmp_path
        )
        edit = EditJobs(id="e", select=select(here.cluster), attributes={"Cmd": "/bin/false"})
        command = JobCommand(
            job=JobId(allowed.cluster, 0), attempt=1, verb="edit_jobs", body=msgspec.msgpack.encode(edit)
        )
        answer = await bus.call(schedd.JOB_COMMAND, "schedd", command, deadline=PATIENCE_S)
        outcomes = schedd.EDIT_JOBS.decode_reply(answer.body).outcomes
        assert ["denied"] == [each.outcome for each in outcomes]
    await pool.client.remove(select())
