"""DAGs on a real pool: condor_submit_dag, the service that decides, and the process that acts."""

import asyncio
import json
import os
import signal
import sys
from pathlib import Path
from typing import Any, TypeVar

import msgspec
import pytest

from kettle.client import Client, select
from kettle.client.jobs.submission import prepare
from kettle.dag.building.parser import parse
from kettle.dag.disk import reader
from kettle.dag.node_order import estimates, packed, urgency
from kettle.dag.node_runs import node_runs
from kettle.testing.patience import PATIENCE_S
from kettle.testing.throwaway_pool import ThrowawayPool
from kettle_services.master.domain.start_order import DAEMON_LIST
from kettle_wire.commands.queue import Select, Submitted
from kettle_wire.events import Event, JobCompleted, JobHeld, JobStarted, JobVacated
from kettle_wire.jobs import JobId
from kettle_wire.workflows import unpacked

from .condor import Condor
from .waiting import WORKFLOW_S, happened

T = TypeVar("T", bound=Event)
NODE = """\
executable = /bin/sh
arguments = "-c 'echo $(JOB) job $(RETRY) >> {work}/runs; test $(JOB) != C -o -e {work}/fixed'"
transfer_executable = false
request_memory = 16
request_disk = 1024
queue
"""
SCRIPT = """\
#!/bin/sh
echo "$1 $2 $3" >> runs
test "$1" != A || until test -e go; do sleep 0.05; done
"""
DIAMOND = """\
JOB A node.sub
JOB B node.sub
JOB C node.sub
JOB D node.sub
PARENT A CHILD B C
PARENT B C CHILD D
SCRIPT PRE A script.sh $NODE pre $RETRY
SCRIPT POST B script.sh $NODE post $RETURN
RETRY C 1
"""
AGAIN = """\
JOB B node.sub
JOB C node.sub
JOB D node.sub
PARENT B CHILD C
PARENT C CHILD D
"""
ORDERED = """\
CONFIG ordered.config
JOB A node.sub
JOB B node.sub
JOB D node.sub
PARENT B CHILD D
"""
COPY = """\
executable = /bin/sh
arguments = "-c 'echo $(JOB) >> {work}/runs; cat $(from) > $(JOB)'"
transfer_executable = false
transfer_input_files = $(from)
transfer_output_files = $(JOB)
request_memory = 16
request_disk = 1024
queue
"""
COPIED = """\
JOB one copy.sub
JOB two copy.sub
VARS one from="source"
VARS two from="one"
PARENT one CHILD two
"""
LONG = """\
JOB A {
    executable = /bin/sleep
    arguments = 600
    transfer_executable = false
    request_memory = 16
    request_disk = 1024
    queue
}
JOB B node.sub
PARENT A CHILD B
FINAL F node.sub
NODE_STATUS_FILE long.status 600
"""


@pytest.fixture(scope="module")
def configuration() -> dict[str, Any]:
    # The process of a DAG job is this Python, which an account of a slot may not reach.
    # When it is removed it has time to run its FINAL node.
    startd = {"job_account": "own", "machine_max_vacate_time": 110.0}
    master = {"daemon_list": [*DAEMON_LIST, "schedd.ap1", "shadow.ap1", "dagman.ap1"]}
    return {"settings": {"startd": startd, "master": master}}


@pytest.fixture
def work(condor: Condor) -> Path:
    """Where the files of the DAG are; the commands start there."""
    condor.environ["PATH"] += f":{Path(sys.executable).parent}"
    (condor.work / "node.sub").write_text(NODE.format(work=condor.work))
    (condor.work / "script.sh").write_text(SCRIPT)
    (condor.work / "script.sh").chmod(0o755)
    return condor.work


async def submitted(condor: Condor, name: str, text: str, *options: str) -> int:
    """A DAG; the cluster of its DAG job."""
    (condor.work / name).write_text(text)
    said = await condor("condor_submit_dag", *options, name)
    assert 0 == said.status, said
    (line,) = [line for line in said.out.splitlines() if "submitted to cluster" in line]
    return int(line.rpartition(" ")[2].rstrip("."))


async def runs(work: Path, count: int) -> list[str]:
    """What nodes and scripts have said when there are so many lines."""
    path = work / "runs"
    async with asyncio.timeout(WORKFLOW_S):
        while not path.exists() or len(path.read_text().splitlines()) < count:
            await asyncio.sleep(0.05)
    return path.read_text().splitlines()


async def nodes_of(pool: ThrowawayPool, cluster: int) -> list[object]:
    """The names of the nodes that have jobs in the queue."""
    mine = Select(constraint=f"DAGManJobId =?= {cluster}")
    return [ad["DAGNodeName"] for ad in await pool.client.jobs(mine, projection=["DAGNodeName"])]


async def exit_code(client: Client, cluster: int) -> int | None:
    """With which the DAG job has ended."""
    async with asyncio.timeout(WORKFLOW_S):
        await client.wait(select(cluster))
    (end,) = [
        each.event for each in await client.events(JobId(cluster, 0)) if isinstance(each.event, JobCompleted)
    ]
    return end.exit.code


async def test_a_dag_whose_processes_are_killed_runs_everything_once(
    pool: ThrowawayPool, condor: Condor, work: Path
) -> None:
    """
    The service and the process of the DAG job are killed while a PRE script runs: it is not run again, every node and script
    runs once for each attempt; a second submission goes on from the rescue file.
    """
    cluster = await submitted(condor, "diamond.dag", DIAMOND)
    assert ["A pre 0"] == await runs(work, 1)
    started = await happened(pool.client, JobId(cluster, 0), JobStarted)
    os.kill(started.pid, signal.SIGKILL)
    pool.kill("dagman")
    (work / "go").touch()
    assert 1 == await exit_code(pool.client, cluster)
    expected = ["A job 0", "A pre 0", "B job 0", "B post 0", "C job 0", "C job 1"]
    assert expected == sorted((work / "runs").read_text().splitlines())
    _, shown, _ = await pool.kettle("dag", "show", str(cluster))
    assert f"Workflow {cluster} (diamond.dag)" in shown
    assert "is over: node_failed, exit code 1." in shown
    _, why, _ = await pool.kettle("dag", "why", str(cluster), "D")
    assert "It can never run, because C has failed." in why
    assert {"DONE A", "DONE B"} <= set((work / "diamond.dag.rescue001").read_text().splitlines())

    (work / "fixed").touch()
    again = await submitted(condor, "diamond.dag", DIAMOND)
    assert 0 == await exit_code(pool.client, again)
    assert sorted([*expected, "C job 0", "D job 0"]) == sorted((work / "runs").read_text().splitlines())


async def test_a_dag_is_run_again_without_what_is_done(
    pool: ThrowawayPool, condor: Condor, work: Path
) -> None:
    """What has failed and what waited for it; then one node alone; two runs are compared node by node."""
    failed = await submitted(condor, "again.dag", AGAIN)
    assert 1 == await exit_code(pool.client, failed)
    refused = await pool.kettle("dag", "rerun", "--from", "X", str(failed))
    assert (1, "the DAG has no node X") == (
        refused.status,
        refused.err[refused.err.find("the DAG has") :][:21],
    )
    _, said, _ = await pool.kettle("dag", "rerun", "--dry-run", str(failed))
    assert "Of 3 nodes 1 count as done, and 2 run: C, D.\n" == said

    (work / "fixed").touch()
    again = await rerun(pool, str(failed))
    assert 0 == await exit_code(pool.client, again)
    assert ["B job 0", "C job 0", "C job 0", "D job 0"] == sorted((work / "runs").read_text().splitlines())
    only = await rerun(pool, "--only", "B", str(again))
    assert 0 == await exit_code(pool.client, only)
    assert 5 == len((work / "runs").read_text().splitlines())
    compared = json.loads((await pool.kettle("dag", "diff", "--json", str(failed), str(again))).out)
    states = {each["node"]: (each[str(failed)]["state"], each[str(again)]["state"]) for each in compared}
    assert {"C": ("failed", "done"), "D": ("futile", "done")} == states


async def rerun(pool: ThrowawayPool, *words: str) -> int:
    """Run a DAG again; the cluster of its DAG job."""
    said = await pool.kettle("dag", "rerun", "--json", *words)
    assert 0 == said.status, said
    return int(json.loads(said.out)["rerun"])


async def test_a_dag_is_ordered_by_its_critical_path(pool: ThrowawayPool, condor: Condor, work: Path) -> None:
    """
    By numbers of nodes first, as its CONFIG says; the next run by how long the nodes took in the run before.
    """
    (work / "ordered.config").write_text("DAGMAN_ORDER = critical-path\nDAGMAN_MAX_JOBS_SUBMITTED = 1\n")
    first = await submitted(condor, "ordered.dag", ORDERED)
    assert 0 == await exit_code(pool.client, first)
    assert ["B job 0", "A job 0", "D job 0"] == (work / "runs").read_text().splitlines()
    async with asyncio.timeout(PATIENCE_S):
        while not await pool.client.history(select(first)):
            await asyncio.sleep(0.05)

    second = await submitted(condor, "ordered.dag", ORDERED, "-f")
    assert 0 == await exit_code(pool.client, second)
    dag = parse(["ordered.dag"], reader(work))
    taken = node_runs(await pool.client.workflows.history(first))
    begun = await pool.client.workflows.begun(second)
    assert begun is not None
    assert packed(urgency(dag, estimates(dag, [taken]))) == unpacked(begun.plan).urgency


async def test_nodes_that_are_unchanged_are_not_run_again(
    pool: ThrowawayPool, condor: Condor, work: Path
) -> None:
    """
    If that is wanted: only what has lost its result, then what reads something new. It is told whose result a node has.
    """
    (work / "copy.sub").write_text(COPY.format(work=work))
    (work / "source").write_text("1\n")

    async def run(*ran: str) -> int:
        """Run it, and look whether these nodes did; the cluster of its DAG job when it is in the history."""
        before = len(await runs(work, 0)) if (work / "runs").exists() else 0
        cluster = await submitted(condor, "copied.dag", COPIED, "-memo", "-f")
        assert 0 == await exit_code(pool.client, cluster)
        assert [*ran] == (work / "runs").read_text().splitlines()[before:]
        async with asyncio.timeout(PATIENCE_S):
            while not await pool.client.history(select(cluster)):
                await asyncio.sleep(0.05)
        return cluster

    first = await run("one", "two")
    (work / "two").unlink()
    second = await run("two")
    state = await pool.client.workflows.show(second)
    assert ({"done": 2}, 1) == (state.counts, state.reused)
    said = await pool.kettle("dag", "why", str(second), "one")
    assert f"It was not run: it is the same as node one of workflow {first}, which ran as job " in said.out
    (work / "source").write_text("2\n")
    await run("one", "two")
    assert "2\n" == (work / "two").read_text()


async def test_a_dag_is_held_released_and_removed_like_a_job(
    pool: ThrowawayPool, condor: Condor, work: Path
) -> None:
    """
    Its nodes go on while it is held, and say what they wait for; with its removal they are removed, and its FINAL node runs.
    """
    cluster = await submitted(condor, "long.dag", LONG)
    job = JobId(cluster, 0)
    await happened(pool.client, job, JobStarted)
    async with asyncio.timeout(PATIENCE_S):
        while not (nodes := await nodes_of(pool, cluster)):
            await asyncio.sleep(0.05)
    assert ["A"] == nodes
    for name in (f"{cluster}.B", "long.dag.B"):
        assert "It waits for A (" in (await pool.kettle("why", name)).out
    assert 0 == (await condor("condor_hold", str(cluster))).status
    assert 0 == (await condor("condor_release", str(cluster))).status
    out = work / "long.dag.dagman.out"
    async with asyncio.timeout(PATIENCE_S):
        while out.read_text().count("STARTING UP") < 2:  # its process knows what a removal is then
            await asyncio.sleep(0.05)
    assert 0 == (await condor("condor_rm", str(cluster))).status
    assert ["F job 0"] == await runs(work, 1)
    async with asyncio.timeout(PATIENCE_S):
        while await nodes_of(pool, cluster):
            await asyncio.sleep(0.05)


async def test_a_dag_that_has_changed_is_held_until_it_is_as_it_was(
    pool: ThrowawayPool, condor: Condor, work: Path
) -> None:
    """
    When its process comes back: another graph, or none that can be read, would run one node for another. What is only read to run a
    node may be another, as with DAGMan.
    """
    again = 'JOB A node.sub\nJOB B node.sub\nVARS B say="{said}"\nPARENT A CHILD B\nSCRIPT PRE A script.sh $NODE pre $RETRY\n'
    cluster = await submitted(condor, "changed.dag", again.format(said="one"))
    job, dag = JobId(cluster, 0), work / "changed.dag"
    assert ["A pre 0"] == await runs(work, 1)
    assert 0 == (await condor("condor_hold", str(cluster))).status
    for text, reason in (
        (f"JOB X node.sub\n{again}", "changed.dag has changed since workflow"),
        (f"JOBS X node.sub\n{again}", "cannot be read any more: changed.dag, line 1"),
    ):
        holds = len(await events(pool.client, job, JobHeld))
        dag.write_text(text)
        assert 0 == (await condor("condor_release", str(cluster))).status
        async with asyncio.timeout(WORKFLOW_S):
            while len(found := await events(pool.client, job, JobHeld)) == holds:
                await asyncio.sleep(0.05)
        assert reason in found[-1].reason
        assert f"kettle dag rerun {cluster}" in found[-1].reason
    assert "1 node differs (X)" in (await events(pool.client, job, JobHeld))[-2].reason
    dag.write_text(again.format(said="two"))
    (work / "node.sub").write_text(NODE.format(work=work).replace("$(JOB) job", "$(JOB) $(say:none)"))
    assert 0 == (await condor("condor_release", str(cluster))).status
    (work / "go").touch()
    assert 0 == await exit_code(pool.client, cluster)
    assert ["A none 0", "A pre 0", "B two 0"] == sorted((work / "runs").read_text().splitlines())


async def events(client: Client, job: JobId, kind: type[T]) -> list[T]:
    """All events of one kind that are recorded of a job."""
    return [each.event for each in await client.events(job) if isinstance(each.event, kind)]


async def test_the_nodes_of_a_dag_that_is_removed_while_held_are_removed_with_it(
    pool: ThrowawayPool, condor: Condor, work: Path
) -> None:
    """No process of it is there to see to them, and none is started for its FINAL node."""
    cluster = await submitted(condor, "kept.dag", LONG)
    job = JobId(cluster, 0)
    async with asyncio.timeout(PATIENCE_S):
        while not await nodes_of(pool, cluster):
            await asyncio.sleep(0.05)
    assert 0 == (await condor("condor_hold", str(cluster))).status
    await happened(pool.client, job, JobVacated)
    assert "STATUS_SUBMITTED (held)" in (work / "long.status").read_text()
    removed = await condor("condor_rm", str(cluster))
    assert (0, f"All jobs in cluster {cluster} have been marked for removal") == (
        removed.status,
        removed.out.strip(),
    )
    async with asyncio.timeout(PATIENCE_S):
        while await nodes_of(pool, cluster):
            await asyncio.sleep(0.05)
        while "is over: removed" not in (await pool.kettle("dag", "show", str(cluster)))[1]:
            await asyncio.sleep(0.05)


OUTER = "SUBDAG EXTERNAL B inner.dag DIR below\nSCRIPT PRE B write.sh\n"
WRITES = "#!/bin/sh\necho 'JOB X ../node.sub' > inner.dag\n"


async def test_a_dag_within_another_is_read_when_its_node_starts(
    pool: ThrowawayPool, condor: Condor, work: Path
) -> None:
    """The PRE script of the node writes it; its nodes run, and the outer DAG succeeds with it."""
    below = work / "below"
    below.mkdir()
    (below / "write.sh").write_text(WRITES)
    (below / "write.sh").chmod(0o755)
    cluster = await submitted(condor, "outer.dag", OUTER)
    assert ["X job 0"] == await runs(work, 1)
    assert 0 == await exit_code(pool.client, cluster)
    assert "-Dag inner.dag" in (below / "inner.dag.condor.sub").read_text()


async def test_the_nodes_of_a_dag_are_in_the_queue_of_their_dag_job(
    pool: ThrowawayPool, condor: Condor, work: Path
) -> None:
    """A host may have several schedds."""
    async with asyncio.timeout(PATIENCE_S):
        while len(await pool.client.ads("Scheduler", projection=["Name"])) < 2:  # it is found by its ad
            await asyncio.sleep(0.05)
    cluster = await submitted(condor, "there.dag", "JOB A node.sub\n", "-r", "ap1")
    assert 0 == await exit_code(pool.client.at("ap1"), cluster)
    assert ["A job 0"] == await runs(work, 1)


async def test_a_dag_is_removed_while_a_node_is_refused(
    pool: ThrowawayPool, condor: Condor, work: Path
) -> None:
    """What is to be tried again is given up, so that the DAG job ends by itself, and with a rescue file."""
    condor.environ["_CONDOR_DAGMAN_MAX_SUBMIT_ATTEMPTS"] = "1000"  # it does not fail before it is removed
    cluster = await submitted(condor, "none.dag", "JOB A none.sub\n")
    refusals = work / "none.dag.lib.err"
    async with asyncio.timeout(PATIENCE_S):
        while not (refusals.exists() and "none.sub" in refusals.read_text()):
            await asyncio.sleep(0.05)
    await condor("condor_rm", str(cluster))
    # The queue counts it as removed at once, and its process writes its files and ends a moment later.
    async with asyncio.timeout(PATIENCE_S):
        while (work / "none.dag.lock").exists():
            await asyncio.sleep(0.05)
    assert (work / "none.dag.rescue001").exists()


WIDE = """\
executable = /bin/sh
arguments = "-c 'echo $(JOB) job $(RETRY) >> {work}/runs'"
transfer_executable = false
request_memory = $(memory)
request_disk = 1024
queue
"""


async def test_of_many_nodes_one_is_refused_by_itself(
    pool: ThrowawayPool, condor: Condor, work: Path
) -> None:
    """Nodes of one description are submitted together; each of the others runs once."""
    (work / "wide.sub").write_text(WIDE.format(work=work))
    condor.environ["_CONDOR_DAGMAN_MAX_SUBMIT_ATTEMPTS"] = "1"
    text = "".join(f'JOB N{n} wide.sub\nVARS N{n} memory="{16 + n % 2}"\n' for n in range(20))
    cluster = await submitted(condor, "wide.dag", f'{text}JOB bad wide.sub\nVARS bad memory="much of it"\n')
    assert 1 == await exit_code(pool.client, cluster)
    assert sorted(f"N{n} job 0" for n in range(20)) == sorted(await runs(work, 20))
    assert "much of it" in (work / "wide.dag.dagman.out").read_text()


async def test_many_submissions_are_what_each_is_alone(pool: ThrowawayPool) -> None:
    """Repeated together or alone they submit nothing, and what is refused is refused by itself."""
    submission = prepare("executable = /bin/sleep\narguments = 600\ntransfer_executable = false\nqueue\n")
    foreign = msgspec.structs.replace(submission, ad={**submission.ad, "Owner": "somebody.else"})
    named = {"together/1": submission, "together/2": foreign, "together/3": submission}
    first = await pool.client.submit_many(named)
    again = await pool.client.submit_many(named)
    alone = await pool.client.submit(submission, command="together/3")
    clusters = [each.cluster for each in first.values() if isinstance(each, Submitted)]
    await pool.client.remove(Select(clusters=clusters))
    assert 2 == len(set(clusters))
    assert clusters == [each.cluster for each in again.values() if isinstance(each, Submitted)]
    assert clusters[1] == alone.cluster
    assert "cannot be submitted with Owner" in str(first["together/2"])


SENT = """\
JOB A {
    executable = /bin/sh
    arguments = "-c 'echo made by A > from_a'"
    transfer_executable = false
    transfer_output_files = from_a
    request_memory = 16
    request_disk = 1024
}
JOB B {
    executable = /bin/cat
    arguments = from_a
    transfer_executable = false
    transfer_input_files = from_a
    output = from_b
    request_memory = 16
    request_disk = 1024
}
PARENT A CHILD B
"""
SENT_WITH = ("should_transfer_files = YES", "transfer_executable = false", "transfer_input_files = sent.dag")


async def test_a_dag_that_is_sent_brings_its_files_from_node_to_node(
    pool: ThrowawayPool, condor: Condor, work: Path
) -> None:
    """
    Its files are not where it was submitted: what a node leaves is there for the next one, and all is fetched with the DAG job.
    """
    (work / "sent.dag").write_text(SENT)
    lines = [word for line in SENT_WITH for word in ("-append", line)]
    said = await condor("condor_submit_dag", "-no_submit", *lines, "sent.dag")
    assert 0 == said.status, said
    said = await condor("condor_submit", "-spool", "-terse", "sent.dag.condor.sub")
    assert 0 == said.status, said
    cluster = int(said.out.partition(".")[0])
    (work / "sent.dag").unlink()
    assert 0 == await exit_code(pool.client, cluster)
    said = await condor("condor_transfer_data", str(cluster))
    assert 0 == said.status, said
    assert "made by A\n" == (work / "from_b").read_text()
