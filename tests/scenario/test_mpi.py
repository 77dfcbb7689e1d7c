"""Launchers of MPI, as Debian has them, in jobs of several nodes of a real pool."""

import asyncio
import json
import shutil
from contextlib import ExitStack
from typing import Any

import pytest

from kettle.client import select
from kettle.testing.patience import PATIENCE_S
from kettle.testing.processes import KnownProcess
from kettle.testing.throwaway_pool import ThrowawayPool
from kettle_wire.events import JobCompleted
from kettle_wire.jobs import JobId

from .evidence import Evidence
from .test_containers import WORKING
from .waiting import happened, there

LAUNCHERS = {
    "openmpi": ("openmpi-bin", "mpirun.openmpi", "OMPI_COMM_WORLD_RANK"),
    "mpich": ("mpich", "mpiexec.hydra", "PMI_RANK"),
}

ENVIRONMENT = "OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_oob_tcp_if_include=lo HYDRA_USE_LOCALHOST=1"
"""That a test may run as root, and where there is no network but the loopback device."""

TASKS = f"""\
universe = parallel
machine_count = 2
tasks = tasks.json
transfer_input_files = {{inputs}}
environment = "{ENVIRONMENT}"
output = out
error = err
log = log
request_cpus = 2
request_memory = 64
request_disk = 1024
queue
"""
"""Of a job of two nodes with the tasks of a file beside it."""


@pytest.fixture(scope="module")
def configuration() -> dict[str, Any]:
    # The images of these tests have no programs: launchers are those of the machine, and MPICH looks for networks in /sys.
    shown = ["/usr", "/etc/alternatives", "/sys/class/net", "/sys/devices"]
    return {"cpus": 4, "settings": {"startd": {"container_runtimes": WORKING, "container_bind": shown}}}


@pytest.fixture(params=LAUNCHERS)
def launcher(request: pytest.FixtureRequest) -> tuple[str, str]:
    """A launcher, and the variable in which its ranks have their numbers."""
    package, program, rank = LAUNCHERS[request.param]
    if shutil.which(program) is None:
        pytest.skip(f"{program} is not installed (Debian: {package})")
    return program, rank


async def submit(pool: ThrowawayPool, evidence: Evidence, launch: str, script: str) -> JobId:
    """A job of three nodes, on which an MPI program runs: this script, with the directory of the evidence."""
    return await parallel(pool, evidence, "rank.sh", script, nodes=3, first=f"kettle_mpi {launch}")


async def parallel(
    pool: ThrowawayPool,
    evidence: Evidence,
    name: str,
    script: str,
    *,
    nodes: int,
    first: str = "exec",
    also: str = "",
) -> JobId:
    """A job of so many nodes, on each of which the script runs with the directory of the evidence."""
    path = evidence.work / name
    path.write_text(script)
    path.chmod(0o755)
    description = f"""\
universe = parallel
machine_count = {nodes}
shell = {first} ./{name} {evidence.directory}
transfer_input_files = {name}{also}
environment = "{ENVIRONMENT}"
output = out.$(Node)
error = err.$(Node)
log = log
request_memory = 64
request_disk = 1024
queue
"""
    submitted = await pool.client.submit(description, cwd=evidence.work)
    return JobId(submitted.cluster, 0)


async def test_ranks_run_on_all_nodes(
    pool: ThrowawayPool, evidence: Evidence, launcher: tuple[str, str]
) -> None:
    """Each node has its rank in its own sandbox, and the job ends with the launcher."""
    program, rank = launcher
    script = f'#!/bin/sh\necho "$_CONDOR_PROCNO ${rank}" $(test "$(pwd -P)" = "$_CONDOR_SCRATCH_DIR" && echo home)\n'
    job = await submit(pool, evidence, program, script)
    done = await happened(pool.client, job, JobCompleted)
    said = (evidence.work / "out.0").read_text()
    assert 0 == done.exit.code, (evidence.work / "err.0").read_text()
    assert [f"{node} {node} home" for node in range(3)] == sorted(said.splitlines())


async def test_a_rank_that_is_killed_ends_the_job(
    pool: ThrowawayPool, evidence: Evidence, launcher: tuple[str, str]
) -> None:
    """
    The others, which would run on for ten minutes, are ended, and the launcher's exit code is the job's.
    """
    program, _ = launcher
    script = """\
#!/bin/sh
umask 0
touch "$1/$_CONDOR_PROCNO"
[ "$_CONDOR_PROCNO" -eq 2 ] || exec sleep 600
while [ "$(ls "$1" | wc -l)" -lt 3 ]; do sleep 0.05; done
kill -9 $$
"""
    job = await submit(pool, evidence, program, script)
    done = await happened(pool.client, job, JobCompleted)
    assert done.exit.code != 0


async def test_removal_leaves_no_process_on_any_node(
    pool: ThrowawayPool, evidence: Evidence, launcher: tuple[str, str]
) -> None:
    """Ranks, also such as ignore SIGTERM, and what they have put into the background, end with the job."""
    program, _ = launcher
    script = """\
#!/bin/bash
umask 0
trap '' TERM
setsid sleep 600 &
echo $$ $! $PPID >"$1/draft.$_CONDOR_PROCNO"
mv "$1/draft.$_CONDOR_PROCNO" "$1/$_CONDOR_PROCNO"
while :; do sleep 600; done
"""
    job = await submit(pool, evidence, program, script)
    files = [evidence.directory / str(node) for node in range(3)]
    await there(*files)
    with ExitStack() as known:
        pids = [int(pid) for file in files for pid in file.read_text().split()]
        processes = [known.enter_context(KnownProcess(pid)) for pid in pids]
        await pool.client.remove(select(str(job)), "over")
        await pool.client.wait(select(str(job)))
        async with asyncio.timeout(PATIENCE_S):
            while any(process.there for process in processes):
                await asyncio.sleep(0.05)


async def test_a_job_reaches_its_own_nodes_and_no_others(pool: ThrowawayPool, evidence: Evidence) -> None:
    """
    The command gets its own words through and back, byte by byte; another job of the same owner, which runs on the same
    machine, can be named neither by a number nor by its host.
    """
    stays = "#!/bin/sh\ntouch $1/there\nexec sleep 600\n"
    other = await parallel(pool, evidence, "other.sh", stays, nodes=1)
    await there(evidence.directory / "there")
    script = """\
#!/bin/bash
[ "$_CONDOR_PROCNO" -eq 0 ] || exec sleep 600
exec 2>&1
kettle_rsh -x node1 'echo on' '$_CONDOR_PROCNO; echo aside >&2; exit 7' 2>aside
echo "exit $?, $(cat aside)"
kettle_rsh 1 cat bytes | cmp - bytes && echo same
host=$(head -1 $MACHINE_FILE)
for node in 2 99999999999999999999 $host; do
    said=$(kettle_rsh $node true 2>&1)
    echo "$? ${said//$host/HOST}"
done
"""
    (evidence.work / "bytes").write_bytes(bytes(range(256)) * 20)
    job = await parallel(pool, evidence, "own.sh", script, nodes=2, also=", bytes")
    done = await happened(pool.client, job, JobCompleted)
    assert done.exit.code == 0
    said = [
        "on 1",
        "exit 7, aside",
        "same",
        f"255 kettle_rsh: job {job} has no node 2: its nodes are 0 to 1",
        "255 kettle_rsh: this job has no node on 99999999999999999999; its nodes are node0 to node1",
        "255 kettle_rsh: HOST has several nodes of this job; name one by its number, such as node1",
    ]
    assert said == (evidence.work / "out.0").read_text().splitlines()
    await pool.client.remove(select(str(other)), "over")


async def test_mpi_tasks_of_one_job_run_on_all_of_its_nodes(
    pool: ThrowawayPool, evidence: Evidence, launcher: tuple[str, str]
) -> None:
    """
    A plain task runs on node 0, and the ranks of each MPI task on all: with its variables, in its directory, as many as it says.
    """
    script = """\
#!/bin/sh
echo "$PROMINENCE_NODE_NUM of $PROMINENCE_NODES, task $PROMINENCE_TASK_NUM: $WHAT, ${PWD#"$_CONDOR_SCRATCH_DIR"}"
"""
    (evidence.work / "there").mkdir()
    for name in ("rank.sh", "there/rank.sh"):
        (evidence.work / name).write_text(script)
        (evidence.work / name).chmod(0o755)
    kind = "openmpi" if launcher[0].startswith("mpirun") else "mpich"
    tasks = [
        {"cmd": ["/bin/sh", "-c", "echo once"]},
        {"cmd": ["./rank.sh"], "type": kind, "env": {"WHAT": 'it\'s "one"'}, "ranks": 1},
        {"cmd": ["./rank.sh"], "type": kind, "env": {"WHAT": "two"}, "ranks": 2, "workdir": "there"},
    ]
    (evidence.work / "tasks.json").write_text(json.dumps({"tasks": tasks}))
    submitted = await pool.client.submit(TASKS.format(inputs="rank.sh, there"), cwd=evidence.work)
    done = await happened(pool.client, JobId(submitted.cluster, 0), JobCompleted)
    assert done.exit.code == 0, (evidence.work / "err").read_text()
    said = (evidence.work / "out").read_text().splitlines()
    assert "once" == said[0]
    assert [f'{node} of 2, task 1: it\'s "one", ' for node in (0, 1)] == sorted(said[1:3])
    assert [f"{node} of 2, task 2: two, /there" for node in (0, 0, 1, 1)] == sorted(said[3:])


HYDRA_AS_INTELS = """\
#!/bin/sh
test "$1" = -genvnone || { echo "no -genvnone: $*" >&2; exit 2; }
unset HYDRA_ENV
export HYDRA_HOST_FILE="${I_MPI_HYDRA_HOST_FILE:?}" HYDRA_LAUNCHER="${I_MPI_HYDRA_BOOTSTRAP:?}"
export HYDRA_LAUNCHER_EXEC="${I_MPI_HYDRA_BOOTSTRAP_EXEC:?}"
exec /usr/bin/mpiexec.hydra "$@"
"""
"""MPICH's launcher, from which Intel's comes, under the names that Intel's has for what it is told."""


@pytest.mark.skipif(
    shutil.which("mpiexec.hydra") is None, reason="mpiexec.hydra is not installed (Debian: mpich)"
)
async def test_intels_launcher_is_told_by_its_own_names(pool: ThrowawayPool, evidence: Evidence) -> None:
    """
    Its ranks are on all nodes, each with the variables of its node; Intel's own is not to be had for a test.
    """
    tools = evidence.directory / "tools"
    tools.mkdir()
    (tools / "mpiexec.hydra").write_text(HYDRA_AS_INTELS)
    (tools / "mpiexec.hydra").chmod(0o755)
    (evidence.work / "rank.sh").write_text(
        '#!/bin/sh\necho "$PROMINENCE_NODE_NUM of $PROMINENCE_NODES: $WHAT"\n'
    )
    (evidence.work / "rank.sh").chmod(0o755)
    environ = {"PATH": f"{tools}:/usr/bin:/bin", "WHAT": "it's me"}
    tasks = [{"cmd": ["./rank.sh"], "type": "intelmpi", "env": environ, "ranks": 2}]
    (evidence.work / "tasks.json").write_text(json.dumps({"tasks": tasks}))
    submitted = await pool.client.submit(TASKS.format(inputs="rank.sh"), cwd=evidence.work)
    done = await happened(pool.client, JobId(submitted.cluster, 0), JobCompleted)
    assert done.exit.code == 0, (evidence.work / "err").read_text()
    said = sorted((evidence.work / "out").read_text().splitlines())
    assert [f"{node} of 2: it's me" for node in (0, 0, 1, 1)] == said


@pytest.mark.skipif(
    not WORKING,
    reason="needs bubblewrap or, as root, runc, and busybox (Debian packages of these names; busybox-static)",
)
async def test_ranks_run_in_the_container_of_their_node(
    pool: ThrowawayPool, evidence: Evidence, launcher: tuple[str, str]
) -> None:
    """
    Each node has a container of its own with the image of the task, in which the launcher's daemon and its ranks are.
    """
    image = evidence.directory / "image"
    for name in ("etc", "usr", "tmp", "sys"):
        (image / name).mkdir(parents=True)
    for name in ("bin", "lib", "lib64"):
        (image / name).symlink_to(f"usr/{name}")
    for name in ("hosts", "nsswitch.conf"):  # those of the machine are shown where the image has some
        (image / "etc" / name).touch()
    (image / "etc" / "image").write_text("an image\n")
    script = (
        '#!/bin/sh\necho "$PROMINENCE_NODE_NUM in $PROMINENCE_CONTAINER_RUNTIME of $(cat /etc/image), $PWD"\n'
    )
    (evidence.work / "rank.sh").write_text(script)
    (evidence.work / "rank.sh").chmod(0o755)
    kind = "openmpi" if launcher[0].startswith("mpirun") else "mpich"
    tasks = [{"image": str(image), "cmd": ["./rank.sh"], "type": kind, "ranks": 2}]
    (evidence.work / "tasks.json").write_text(json.dumps({"tasks": tasks}))
    submitted = await pool.client.submit(TASKS.format(inputs="rank.sh"), cwd=evidence.work)
    done = await happened(pool.client, JobId(submitted.cluster, 0), JobCompleted)
    assert done.exit.code == 0, (evidence.work / "err").read_text()
    said = sorted((evidence.work / "out").read_text().splitlines())
    assert [f"{node} in {WORKING[0]} of an image, /home/user" for node in (0, 0, 1, 1)] == said
