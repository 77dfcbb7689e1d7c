"""What people write in submit descriptions, from condor_submit to what the jobs then do."""

import asyncio
import os
import re
from pathlib import Path

from kettle.client import Client, select
from kettle.testing.commands.running import Said
from kettle.testing.patience import PATIENCE_S
from kettle.testing.throwaway_pool import ThrowawayPool

from .condor import WAITS, Condor

SH = "executable = /bin/sh\n"


async def ended(pool: ThrowawayPool, cluster: int) -> None:
    async with asyncio.timeout(PATIENCE_S):
        await pool.client.wait(select(cluster))


async def held(client: Client, cluster: int) -> str:
    """Wait until a job is held; its reason."""
    async with asyncio.timeout(PATIENCE_S):
        async for progress in client.watch(select(cluster)):
            if progress.counts["held"]:
                break
    [ad] = await client.jobs(select(cluster), projection=["HoldReason", "HoldReasonCode"])
    return f"{ad['HoldReasonCode']}: {ad['HoldReason']}"


async def test_a_variable_of_the_queue_statement_may_be_a_command(condor: Condor) -> None:
    """It wins over what the description says above, in each row."""
    rows = "10s 512\n20s 1 GB\n"
    cluster = await condor.submitted(
        f"{WAITS}request_memory = 1\nqueue arguments,request_memory from (\n{rows})\n"
    )
    said = await condor("condor_q", f"{cluster}", "-af", "Args", "RequestMemory")
    assert "10s 512\n20s 1024\n" == said.out


async def test_the_event_log_is_there_when_the_submission_returns(condor: Condor) -> None:
    """With the event of each job, so that a program may open it at once."""
    for _ in range(5):
        cluster = await condor.submitted(f"{WAITS}log = $(Cluster).log\nqueue 3\n")
        found = re.findall(
            r"^000 \((\d+)\.(\d+)\.", (condor.work / f"{cluster}.log").read_text(), re.MULTILINE
        )
        assert [(f"{cluster:03}", f"{proc:03}") for proc in range(3)] == found


async def test_a_program_that_is_listed_among_its_files_stays_a_program(
    condor: Condor, pool: ThrowawayPool
) -> None:
    script = condor.work / "run.sh"
    script.write_text("#!/bin/sh\necho ran > done\n")
    cluster = await condor.submitted("executable = run.sh\ntransfer_input_files = run.sh\nqueue\n")
    await ended(pool, cluster)
    assert "ran\n" == (condor.work / "done").read_text()


async def test_references_to_the_machine_and_the_directory_get_values(
    condor: Condor, pool: ThrowawayPool
) -> None:
    """
    `$$(Attr)` in arguments, `$$(CondorScratchDir)` in the environment; the queue keeps them as they are.
    """
    text = (
        SH
        + "arguments = \"-c 'echo $$(OpSys) $$([TARGET.Cpus*2]) $$(NoGpu:none); test $HERE = $PWD && echo in'\"\n"
        "environment = HERE=$$(CondorScratchDir)\nshould_transfer_files = YES\noutput = out\nqueue\n"
    )
    cluster = await condor.submitted(text)
    await ended(pool, cluster)
    assert "LINUX 2 none\nin\n" == (condor.work / "out").read_text()
    said = await condor("condor_history", f"{cluster}", "-af", "Environment")
    assert "HERE=$$(CondorScratchDir)\n" == said.out


async def test_a_reference_without_a_value_holds_the_job(condor: Condor, pool: ThrowawayPool) -> None:
    cluster = await condor.submitted(f'{SH}arguments = "-c $$(NoSuchThing)"\nqueue\n')
    assert "5: Cannot expand $$(NoSuchThing)." == await held(pool.client, cluster)
    await condor("condor_rm", f"{cluster}")


async def test_a_factory_makes_its_jobs_one_after_the_other(condor: Condor, pool: ThrowawayPool) -> None:
    """As with max_materialize, which it need not say."""
    cluster = await condor.submitted(f"{SH}arguments = -c true\nqueue 3\n", "-factory")
    await ended(pool, cluster)
    # Of a cluster whose jobs were made one after the other the command waits for those that it knows of.
    jobs = [f"{cluster}.{proc}" for proc in range(3)]
    said = await condor("condor_history", *jobs, "-af", "ProcId", "JobMaterializeLimit")
    assert {"0 3", "1 3", "2 3"} == set(said.out.splitlines())


async def test_an_interactive_job_is_a_shell(condor: Condor, pool: ThrowawayPool) -> None:
    """In the place of the description's program, with its request; the job ends with the shell."""
    (condor.work / "job.sub").write_text(f"{SH}arguments = -c false\nrequest_memory = 33\nqueue\n")
    said = await condor("condor_submit", "-interactive", "job.sub", typed="cat .job.ad; exit 7\n")
    assert (7, "") == (said.status, said.err), said
    assert "\nRequestMemory = 33\n" in said.out
    found = re.search(r"submitted to cluster (\d+)", said.out)
    assert found is not None
    await ended(pool, int(found[1]))
    assert ["job.sub"] == [path.name for path in condor.work.iterdir()]


async def test_what_an_access_point_can_do(condor: Condor) -> None:
    said = await condor("condor_submit", "-capabilities")
    assert "Schedd schedd\n Has Late Materialization enabled\n" == said.out


async def test_missing_files_are_looked_for_only_where_that_is_wanted(condor: Condor) -> None:
    """All of them are named; an option, a knob and a command say that they come later."""
    text = f"{WAITS}transfer_input_files = one, two\ninput = three\n"
    said = await condor("condor_submit", typed=f"{text}queue\n")
    assert 1 == said.status
    for name in "one", "two", "three":
        assert f"the input file {condor.work / name} does not exist" in said.err
    for words, line, knob in (
        (("-disable",), "", ""),
        ((), "skip_filechecks = true\n", ""),
        ((), "", "true"),
    ):
        said = await condor(
            "condor_submit",
            "-terse",
            *words,
            typed=f"{text}{line}queue\n",
            _condor_SUBMIT_SKIP_FILECHECKS=knob,
        )
        assert (0, "") == (said.status, said.err)
    warned = await condor("condor_submit", "-terse", typed=f"{text}skip_filechecks = warn\nqueue\n")
    assert (0, 3) == (warned.status, warned.err.count("WARNING: "))


async def test_a_description_without_jobs_says_so(condor: Condor) -> None:
    """It is no error: a list may be empty."""
    (condor.work / "job.sub").write_text(f"{WAITS}queue x matching nothing*\n")
    said = await condor("condor_submit", "job.sub")
    expected = '\nWARNING: "job.sub" has only empty "queue" commands -- no jobs queued\n'
    assert (0, "", expected) == tuple(said)


async def test_a_job_runs_where_its_files_are_if_it_may(condor: Condor, pool: ThrowawayPool) -> None:
    """
    Files are moved if needed: not on the same file system with the owner's rights, which a slot's account has not.
    """
    cluster = await condor.submitted(f"{SH}arguments = \"-c 'pwd > where'\"\nqueue\n")
    await ended(pool, cluster)
    own = os.geteuid() != 0
    assert own is (Path((condor.work / "where").read_text().strip()) == condor.work)


async def test_too_many_jobs_are_refused_before_one_is_made(condor: Condor, pool: ThrowawayPool) -> None:
    """
    The limit is what is said, although not even the first job could be made, and in whichever way they are submitted.
    """
    text = f"{WAITS}request_cpus = 1 +\nqueue 200000\n"
    (condor.work / "job.sub").write_text(text)
    limit = "the submission has 200000 jobs, but at most 100000 may be submitted at once"
    for said in (
        await condor("condor_submit", "job.sub"),
        await condor("condor_submit", typed=text),
        Said(*await pool.kettle("submit", str(condor.work / "job.sub"))),
    ):
        assert (1, "", True) == (said.status, said.out, limit in said.err), said
    more = await condor("condor_submit", "-maxjobs", "199999", "job.sub")
    assert (1, "\nERROR: the description makes 200000 jobs, more than the 199999 of -maxjobs\n") == more[::2]
    little = await condor("condor_submit", "-factory", "job.sub")
    assert (1, True) == (little.status, "'1 +' is not an expression" in little.err), little
