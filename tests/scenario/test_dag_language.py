"""Every command of the language of DAG files, carried out on a real pool."""

import asyncio
from pathlib import Path
from typing import Final

from kettle.client import select
from kettle.testing.patience import PATIENCE_S
from kettle.testing.throwaway_pool import ThrowawayPool
from kettle_wire.ads.types import Ad
from kettle_wire.commands.queue import Select
from kettle_wire.jobs import JobId

from .condor import Condor
from .test_workflows import configuration, exit_code, runs, submitted, work

__all__ = ["configuration", "work"]

SAY = """\
SUBMIT-DESCRIPTION say {{
    executable = /bin/sh
    arguments = "-c 'echo $(JOB) $(word:-) >> {work}/runs; $(then:exit) $(code:0)'"
    transfer_executable = false
    request_memory = 16
    request_disk = 1024
    queue
}}
"""
EVERY = """\
ENV SET FROM_DAG=set
SET_JOB_ATTR Flavour = "sweet"
INCLUDE more.dag
SPLICE S up.dag
SPLICE T down.dag
CONNECT S T
PARENT included CHILD S
JOB fails say
VARS fails code="4"
RETRY fails 5 UNLESS-EXIT 4
JOB after say
VARS after word="$(DAG_PARENT_NAMES)" code="$(RETRY)"
WEAK PARENT fails CHILD after
PRIORITY after 7
CATEGORY after few
MAXJOBS few 1
SAVE_POINT_FILE after every.save
JOB skipped say
SCRIPT PRE skipped /bin/false
PRE_SKIP skipped 1
JOB deferred say DIR below
SCRIPT DEFER 9 0 PRE deferred defer.sh
SCRIPT DEBUG post.out STDOUT POST deferred /bin/echo $NODE $RETURN
JOB nothing say NOOP
JOB before say DONE
DONE skipped_too
JOB skipped_too say
PARENT nothing before skipped_too CHILD deferred
JOB many {
    executable = /bin/sh
    arguments = "-c 'exit $(Process)'"
    transfer_executable = false
    request_memory = 16
    request_disk = 1024
    queue 2
}
TOLERANCE many 50% WAIT
JOB grows {
    executable = /bin/sh
    arguments = "-c 'grep ^Memory.= $_CONDOR_MACHINE_AD >> $(DIRECTORY)/grown; test $(RETRY) -eq 2'"
    transfer_executable = false
    request_memory = min({512, 128 * (1 + 2 * $(RETRY))})
    request_disk = 1024
    queue
}
RETRY grows 2
VARS grows DIRECTORY="{work}"
FINAL last say
DOT every.dot
NODE_STATUS_FILE every.status
JOBSTATE_LOG every.jobstate
"""
FILES = {
    "more.dag": "JOB included say\n",
    "up.dag": "JOB a say\nPIN_OUT a 1\n",
    "down.dag": "JOB b say\nPIN_IN b 1\n",
    "below/defer.sh": "#!/bin/sh\ntest -e deferred && exit 0\necho $FROM_DAG > deferred\nexit 9\n",
}
BESIDE = """\
JOB A {
    executable = /bin/sleep
    arguments = 600
    transfer_executable = false
    request_memory = 16
    request_disk = 1024
    queue
}
JOB B say
PARENT A CHILD B
SCRIPT HOLD A hold.sh $NODE
ABORT-DAG-ON A 3 RETURN 0
SCRIPT POST A three.sh
PROVISIONER P say
VARS P then="sleep" code="600"
SERVICE V say
VARS V then="sleep" code="600"
"""


async def test_every_command_of_the_language_is_carried_out(
    pool: ThrowawayPool, condor: Condor, work: Path
) -> None:
    """
    What each says can be seen in what ran, in its order, in the files that are left, and in the result, which
    FINAL decides.
    """
    for name, text in FILES.items():
        (work / name).parent.mkdir(exist_ok=True)
        (work / name).write_text(text)
    (work / "below" / "defer.sh").chmod(0o755)
    cluster = await submitted(condor, "every.dag", SAY.format(work=work) + EVERY.replace("{work}", str(work)))
    assert 0 == await exit_code(pool.client, cluster)
    said = (work / "runs").read_text().splitlines()
    expected = ["S+a -", "T+b -", "after fails", "deferred -", "fails -", "included -", "last -"]
    assert expected == sorted(said)
    assert said.index("S+a -") < said.index("T+b -")
    assert said.index("fails -") < said.index("after fails")
    assert "last -" == said[-1]
    assert "set\n" == (work / "below" / "deferred").read_text()
    assert "deferred 0\n" == (work / "below" / "post.out").read_text()
    assert "DONE before" in (work / "save_files" / "every.save").read_text()
    assert "digraph" in (work / "every.dot").read_text()
    assert 'Type = "StatusEnd"' in (work / "every.status").read_text()
    assert "DAGMAN_FINISHED 0 ***" in (work / "every.jobstate").read_text()
    [ad] = await in_history(pool, cluster)
    assert "sweet" == ad["Flavour"]
    assert ["Memory = 128", "Memory = 384", "Memory = 512"] == (work / "grown").read_text().splitlines()


async def in_history(pool: ThrowawayPool, cluster: int) -> list[Ad]:
    """The ads of a cluster that has ended."""
    async with asyncio.timeout(PATIENCE_S):
        while not (found := await pool.client.history(select(cluster))):
            await asyncio.sleep(0.05)
    return found


async def test_nodes_beside_the_graph_and_the_value_that_ends_all(
    pool: ThrowawayPool, condor: Condor, work: Path
) -> None:
    """
    Nodes wait for the provisioner; a held job has a HOLD script run; the value of a POST script ends the DAG as a success, and with it
    what is beside the graph.
    """
    for name, program in {"hold.sh": f"echo held $1 >> {work}/runs", "three.sh": "exit 3"}.items():
        (work / name).write_text(f"#!/bin/sh\n{program}\n")
        (work / name).chmod(0o755)
    cluster = await submitted(condor, "beside.dag", SAY.format(work=work) + BESIDE)
    assert ["P -", "V -"] == sorted(await runs(work, 2))
    assert "A" not in await nodes(pool, cluster)
    provisioner = (await nodes(pool, cluster))["P"]
    await pool.client.edit_jobs(Select(jobs=[provisioner]), {"ProvisionerState": 2})
    async with asyncio.timeout(PATIENCE_S):
        while "A" not in (found := await nodes(pool, cluster)):
            await asyncio.sleep(0.05)
    held = await condor("condor_hold", str(found["A"]))
    assert 0 == held.status
    assert "held A" == (await runs(work, 3))[2]
    assert 0 == (await condor("condor_rm", str(found["A"]))).status
    assert 0 == await exit_code(pool.client, cluster)
    async with asyncio.timeout(PATIENCE_S):
        while await nodes(pool, cluster):
            await asyncio.sleep(0.05)
    assert 3 == len((work / "runs").read_text().splitlines())
    shown = (await pool.kettle("dag", "show", str(cluster))).out
    assert "is over: ok, exit code 0." in shown


AGAIN: Final = """\
JOB A say
JOB B {{
    executable = /bin/sh
    arguments = "-c 'echo B - >> {work}/runs; test -e {work}/seen || exec mkdir {work}/seen/none; true'"
    transfer_executable = false
    request_memory = 16
    request_disk = 1024
    queue
}}
JOB C say
SCRIPT POST B post.sh $RETURN
PARENT A CHILD B
PARENT B CHILD C
"""


async def test_what_has_failed_begins_again_when_nothing_else_can_run(
    pool: ThrowawayPool, condor: Condor, work: Path
) -> None:
    """
    B fails, and C can never run; with `-reruns` both begin again in the same DAG, with the scripts of B, and A does not.
    """
    (work / "post.sh").write_text(f"#!/bin/sh\necho post $1 >> {work}/runs\nmkdir -p {work}/seen\nexit $1\n")
    (work / "post.sh").chmod(0o755)
    cluster = await submitted(condor, "again.dag", (SAY + AGAIN).format(work=work), "-reruns", "2")
    assert 0 == await exit_code(pool.client, cluster)
    assert ["A -", "B -", "post 1", "B -", "post 0", "C -"] == (work / "runs").read_text().splitlines()
    said = (work / "again.dag.dagman.out").read_text()
    assert 1 == said.count("Nothing else can run: 1 node(s) that failed begin again.")


DENIED = """\
JOB A say
SCRIPT PRE A denied.sh
JOB B say
SCRIPT POST B headless.sh
JOB C say
"""


async def test_a_script_that_cannot_be_executed_has_failed(
    pool: ThrowawayPool, condor: Condor, work: Path
) -> None:
    """
    Because nobody may, or because nothing says who reads it: its node fails, and says why; the others run, and the DAG ends with a rescue
    file.
    """
    for name, mode, text in (("denied.sh", 0o644, "#!/bin/sh\n"), ("headless.sh", 0o755, "true\n")):
        (work / name).write_text(text)
        (work / name).chmod(mode)
    cluster = await submitted(condor, "denied.dag", (SAY + DENIED).format(work=work))
    assert 1 == await exit_code(pool.client, cluster)
    assert {"B -", "C -"} == {*(work / "runs").read_text().splitlines()}
    done = [
        line for line in (work / "denied.dag.rescue001").read_text().splitlines() if line.startswith("DONE")
    ]
    assert ["DONE C"] == done
    said = (work / "denied.dag.dagman.out").read_text()
    for node, part in (("A", "PRE"), ("B", "POST")):
        assert f"{part} Script of node {node} is held: " in said
        assert f"{part} Script of node {node} failed with status 1" in said
    explained = (await pool.kettle("dag", "why", str(cluster), "A")).out
    assert "the script cannot be run: " in explained
    assert "denied.sh" in explained


async def nodes(pool: ThrowawayPool, cluster: int) -> dict[object, JobId]:
    """The jobs of a DAG in the queue, by the names of their nodes."""
    mine = Select(constraint=f"DAGManJobId =?= {cluster}")
    ads = await pool.client.jobs(mine, projection=["DAGNodeName", "ClusterId", "ProcId"])
    return {ad["DAGNodeName"]: JobId(int(str(ad["ClusterId"])), int(str(ad["ProcId"]))) for ad in ads}
