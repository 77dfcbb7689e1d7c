"""The condor_* commands as programs use them: what stands where, to the letter, and the exit codes."""

import asyncio
import json
import os
import re
import signal
from pathlib import Path

import pytest

from kettle.testing.commands.running import Said, execute
from kettle.testing.patience import PATIENCE_S
from kettle.testing.throwaway_pool import ThrowawayPool
from kettle_wire.events import JobRemoved, JobStarted, JobSuspended

from .condor import WAITS, Condor
from .waiting import happened

RUNS = "executable = /bin/sleep\narguments = 600\n"
ENDS = "executable = /bin/sh\narguments = \"-c 'exit 3'\"\nlog = log\n"


# -- condor_submit -------------------------------------------------------------------------------------------------------


async def test_a_submission_prints_two_lines_and_nothing_else(condor: Condor) -> None:
    """One dot for each job, and the number of the cluster at the end of all."""
    (condor.work / "my jobs.sub").write_text(f"#!/usr/bin/env condor_submit\n{WAITS}queue 3\nqueue\n")
    said = await condor("condor_submit", "my jobs.sub", _condor_TOOL_DEBUG="D_FULLDEBUG,D_SECURITY")
    cluster = re.search(r"submitted to cluster (\d+)", said.out)
    assert cluster is not None, said
    expected = f"Submitting job(s)....\n4 job(s) submitted to cluster {cluster[1]}.\n"
    assert Said(0, expected, "") == said


async def test_a_description_may_have_what_programs_write(condor: Condor) -> None:
    """Commands for more comfort, an attribute without a value; lines that mean nothing get a warning."""
    odd = "LogDirectory = logs\nsubmit_event_notes = hello\n+projectname = \n"
    said = await condor("condor_submit", "-terse", typed=f"{odd}{WAITS}queue x in (a)\n")
    warned = "WARNING: the line 'LogDirectory = logs' was unused by condor_submit. Is it a typo?\n"
    assert f"{warned}WARNING: the Queue variable 'x' was unused by condor_submit. Is it a typo?\n" == said.err
    cluster = said.out.partition(".")[0]
    assert "undefined\n" == (await condor("condor_q", f"{cluster}", "-af", "projectname")).out
    ages = (await condor("condor_q", f"{cluster}", "-af", "time() - QDate", "ServerTime - QDate")).out
    assert all(0 <= int(age) < 3600 for age in ages.split())


@pytest.mark.parametrize("word", ["-terse", "--terse", "-ters"])
async def test_terse_prints_first_and_last(condor: Condor, word: str) -> None:
    said = await condor("condor_submit", word, typed=f"{WAITS}queue 3\n")
    assert re.fullmatch(r"(\d+)\.0 - \1\.2\n", said.out), said
    assert "" == said.err


async def test_verbose_prints_each_ad(condor: Condor) -> None:
    """The file - says the same as -verbose."""
    (condor.work / "job.sub").write_text(f'{WAITS}+Tag = "$(ClusterId).$(ProcId)"\nqueue 2\n')
    for words, typed in (
        (("-verbose", "job.sub"), ""),
        (("-",), (condor.work / "job.sub").read_text()),
    ):
        said = await condor("condor_submit", *words, typed=typed)
        blocks = re.split(r"^\n\*\* Proc (\d+\.\d+):\n", said.out, flags=re.MULTILINE)
        assert 5 == len(blocks), said.out
        assert f'Tag = "{blocks[3]}"\n' in blocks[4]
        assert blocks[3].endswith(".1")


async def test_what_is_typed_beside_the_description_counts(condor: Condor) -> None:
    description = f"{WAITS}request_memory = $(mem)\nqueue\n"
    words = ("mem=77", "-append", '+Tag = "x"', "-append", "priority = 5", "-batch-name", "two words")
    cluster = await condor.submitted(description, *words)
    said = await condor("condor_q", f"{cluster}", "-af:t", "RequestMemory", "Tag", "JobPrio", "JobBatchName")
    assert "77\tx\t5\ttwo words\n" == said.out
    table = (await condor("condor_q", f"{cluster}")).out
    assert "two words" in table


@pytest.mark.parametrize(
    ("words", "typed", "sentence"),
    [
        ((), "queue\n", "executable"),
        ((), f"{WAITS}leave = \nqueue x y\n", "line"),
        (("missing.sub",), "", "Failed to open command file (missing.sub) (No such file or directory)"),
        (("-maxjobs", "2"), f"{WAITS}queue 3\n", "3 jobs"),
        (("-addr", "<1.2.3.4:5>"), f"{WAITS}queue\n", "-addr"),
        (("-interactive", "-factory"), "", "Interactive jobs cannot be materialized late"),
        (("-dry-run", "ads"), f"{WAITS}queue\n", "No submit filename was provided, and 'ads'"),
        ((), f"{WAITS}use_scitokens = true\nqueue\n", "scitokens_file"),
    ],
)
async def test_a_refused_submission_queues_nothing(
    condor: Condor, words: tuple[str, ...], typed: str, sentence: str
) -> None:
    said = await condor("condor_submit", *words, typed=typed)
    assert (1, "") == (said.status, said.out)
    assert said.err.startswith("\nERROR: ")
    assert sentence in said.err


async def test_a_dry_run_sends_nothing(condor: Condor) -> None:
    (condor.work / "job.sub").write_text(f"{WAITS}queue 2\n")
    said = await condor("condor_submit", "-dry-run", "-", "job.sub")
    assert (1, 2) == (said.out.count("\nCmd="), said.out.count("\nProcId="))
    assert said.out.startswith("Dry-Run job(s)\n")
    assert said.out.endswith("\n.\n2 job(s) dry-run to cluster 1.\n")
    assert "" == (await condor("condor_q", "-af", "ClusterId")).out


# -- several clusters of one description -----------------------------------------------------------------------------------

SEVERAL = f"{WAITS}queue 2\nqueue\nexecutable = /bin/true\nqueue 2\n"


async def test_another_program_makes_another_cluster(condor: Condor) -> None:
    """A dot for each job, then one line for each cluster."""
    said = await condor("condor_submit", "-maxjobs", "5", typed=SEVERAL)
    lines = r"Submitting job\(s\)\.{5}\n3 job\(s\) submitted to cluster (\d+)\.\n2 job\(s\) submitted to cluster (\d+)\.\n"
    found = re.fullmatch(lines, said.out)
    assert found is not None, said
    assert (0, "") == (said.status, said.err)
    first, second = int(found[1]), int(found[2])
    assert first + 1 == second
    jobs = (await condor("condor_q", f"{first}", f"{second}", "-af:j", "Cmd")).out.splitlines()
    sleeps = [f"{first}.{proc} /bin/sleep" for proc in range(3)]
    assert [*sleeps, *(f"{second}.{proc} /bin/true" for proc in range(2))] == jobs


async def test_terse_prints_a_line_for_each_cluster(condor: Condor) -> None:
    said = await condor("condor_submit", "-terse", typed=SEVERAL)
    found = re.fullmatch(r"(\d+)\.0 - \1\.2\n(\d+)\.0 - \2\.1\n", said.out)
    assert found is not None, said
    assert int(found[1]) + 1 == int(found[2])


async def test_verbose_prints_the_jobs_of_each_cluster(condor: Condor) -> None:
    said = await condor("condor_submit", "-verbose", typed=f'+Tag = "$(Cluster).$(Process)"\n{SEVERAL}')
    blocks = re.split(r"^\n\*\* Proc (\d+\.\d+):\n", said.out, flags=re.MULTILINE)[1:]
    assert 10 == len(blocks), said
    assert ["0", "1", "2", "0", "1"] == [name.partition(".")[2] for name in blocks[::2]]
    assert all(f'Tag = "{name}"\n' in ad for name, ad in zip(blocks[::2], blocks[1::2], strict=True))


async def test_a_dry_run_numbers_the_clusters(condor: Condor) -> None:
    (condor.work / "job.sub").write_text(SEVERAL)
    said = await condor("condor_submit", "-dry-run:full", "ads", "job.sub")
    lines = "Dry-Run job(s).....\n3 job(s) dry-run to cluster 1.\n2 job(s) dry-run to cluster 2.\n"
    assert Said(0, lines, "") == said
    numbers = re.findall(r"^ClusterId = (\d+)$", (condor.work / "ads").read_text(), re.MULTILINE)
    assert ["1", "1", "1", "2", "2"] == numbers


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("-single-cluster",), "standard input, line 7: a second cluster would begin here"),
        (("-maxjobs", "4"), "5 jobs, more than the 4"),
    ],
)
async def test_several_clusters_may_be_unwanted(
    condor: Condor, words: tuple[str, ...], sentence: str
) -> None:
    said = await condor("condor_submit", *words, typed=SEVERAL)
    assert (1, "") == (said.status, said.out)
    assert said.err.startswith("\nERROR: ")
    assert sentence in said.err
    assert "" == (await condor("condor_q", "-af", "ClusterId")).out


async def test_a_single_cluster_may_have_several_queue_statements(condor: Condor) -> None:
    await condor.submitted(f"{WAITS}queue 2\npriority = 5\nqueue\n", "-single-cluster")


@pytest.mark.parametrize("how", ["", "-terse"])
async def test_what_was_queued_before_a_cluster_that_is_refused_is_said(condor: Condor, how: str) -> None:
    """The first cluster stays, the one after the refused one is not sent any more."""
    refused = '+AccountingGroup = "not a group!"\nexecutable = /bin/true\nqueue\n'
    after = "executable = /bin/false\nqueue\n"
    said = await condor("condor_submit", *([how] if how else []), typed=f"{WAITS}queue 2\n{refused}{after}")
    cluster = (await condor("condor_q", "-af", "ClusterId")).out.split()
    assert 2 == len(cluster), said
    assert 1 == len(set(cluster))
    told = f"{cluster[0]}.0 - {cluster[0]}.1\n" if how else f"2 job(s) submitted to cluster {cluster[0]}.\n"
    assert 1 == said.status
    assert said.out.endswith(told)
    assert said.err.startswith("\nERROR: ")
    assert (
        f"Of the 3 clusters of the description 1 had been queued before that, and stay: {cluster[0]}\n"
        in said.err
    )
    assert said.err.endswith(f"condor_rm {cluster[0]}\n")


# -- what is done to jobs ------------------------------------------------------------------------------------------------


async def test_what_is_done_is_said_of_each_job(condor: Condor) -> None:
    """What was done to standard output, what was not to standard error; 0 if something was done."""
    cluster = await condor.submitted(f"{WAITS}queue 2\n")
    one, other, none = f"{cluster}.0", f"{cluster}.1", f"{cluster}.7"
    for words, expected in (
        (("condor_release", one), Said(1, "", f"Job {one} not held to be released\n")),
        (("condor_hold", one, none), Said(0, f"Job {one} held\n", f"Job {none} not found\n")),
        (("condor_hold", one), Said(1, "", f"Job {one} already held\n")),
        (("condor_release", one), Said(0, f"Job {one} released\n", "")),
        (("condor_suspend", one), Said(1, "", f"Job {one} not running to be suspended\n")),
        (("condor_continue", one), Said(1, "", f"Job {one} not running to be continued\n")),
        (("condor_vacate_job", one), Said(1, "", f"Job {one} not running to be vacated\n")),
        (("condor_rm", one), Said(0, f"Job {one} marked for removal\n", "")),
        (("condor_rm", one), Said(1, "", f"Job {one} not found\n")),
        (("condor_rm", "1000000.0"), Said(1, "", "Job 1000000.0 not found\n")),
        (("condor_rm", one, other), Said(0, f"Job {other} marked for removal\n", f"Job {one} not found\n")),
    ):
        assert expected == await condor(*words), words


async def test_a_job_that_stays_is_forced_out(condor: Condor) -> None:
    """What is removed and to be left in the queue goes with -forcex, and only then."""
    job = f"{await condor.submitted(f'{WAITS}leave_in_queue = TRUE{os.linesep}queue{os.linesep}')}.0"
    forced = ("condor_rm", "-forcex", job)
    assert Said(1, "", f"Job {job} not in `X' state to be forcibly removed\n") == await condor(*forced)
    assert 0 == (await condor("condor_rm", job)).status
    assert Said(1, "", f"Job {job} already marked for removal\n") == await condor("condor_rm", job)
    assert "3\n" == (await condor("condor_q", job, "-af", "JobStatus")).out
    assert Said(0, f"Job {job} removed locally (remote state unknown)\n", "") == await condor(*forced)
    assert Said(1, "", f"Job {job} not found\n") == await condor(*forced)


async def test_of_many_jobs_it_is_said_once(condor: Condor) -> None:
    """For each cluster, person and condition; 1 if there was nothing to do for one of them."""
    cluster = await condor.submitted(f"{WAITS}queue 3\n")
    where = f"matching constraint ((ClusterId == {cluster}) && (ProcId == 2))"
    owner = (await condor("condor_q", f"{cluster}.0", "-af", "Owner")).out.strip()
    condition = f"ClusterId == {cluster}"
    for words, expected in (
        (("condor_hold", f"{cluster}"), Said(0, f"All jobs in cluster {cluster} have been held\n", "")),
        (("condor_hold", f"{cluster}"), Said(1, "", f"Couldn't find/hold all jobs in cluster {cluster}\n")),
        (
            ("condor_release", f"{cluster}", "-constraint", "ProcId == 2"),
            Said(0, f"All jobs {where} have been released\n", ""),
        ),
        (
            ("condor_rm", "-const", condition, "-reason", "no more"),
            Said(0, f"All jobs matching constraint ({condition}) have been marked for removal\n", ""),
        ),
        (("condor_rm", owner), Said(1, "", f'Couldn\'t find/remove all jobs of user "{owner}"\n')),
        (("condor_rm", "-all"), Said(0, "", "Couldn't find/remove all jobs\n")),
    ):
        assert expected == await condor(*words), words


async def test_running_jobs_stand_still_and_go_on(condor: Condor, pool: ThrowawayPool) -> None:
    job = f"{await condor.submitted(f'{RUNS}queue{os.linesep}')}.0"
    await happened(pool.client, job, JobStarted)
    assert Said(0, f"Job {job} suspended\n", "") == await condor("condor_suspend", job)
    await happened(pool.client, job, JobSuspended)
    assert "S" == (await condor("condor_q", job, "-nobatch")).out.splitlines()[4].split()[5]
    assert Said(0, f"Job {job} continued\n", "") == await condor("condor_continue", job)
    host = (await condor("condor_q", job, "-af", "RemoteHost")).out
    assert re.fullmatch(r"slot\S+@\S+\n", host)
    assert f" {host}" in (await condor("condor_q", "-run")).out
    assert Said(0, f"Job {job} fast-vacated\n", "") == await condor("condor_vacate_job", "-fast", job)


async def test_attributes_and_priorities_are_set(condor: Condor) -> None:
    cluster = await condor.submitted(f"{WAITS}queue 2\n")
    assert Said(0, 'Set attribute "Tag" for 2 matching jobs.\n', "") == await condor(
        "condor_qedit", f"{cluster}", "Tag", '"x y"'
    )
    said = await condor("condor_qedit", f"{cluster}.1", "RequestMemory=1024*2", 'Tag="z"')
    lines = ['Set attribute "RequestMemory" for 1 matching job.', 'Set attribute "Tag" for 1 matching job.']
    assert lines == said.out.splitlines()
    assert Said(0, "", "") == await condor("condor_prio", "-p", "-7", f"{cluster}")
    assert Said(0, "", "") == await condor("condor_prio", "+2", f"{cluster}.0")
    shown = await condor("condor_q", f"{cluster}", "-af", "Tag", "RequestMemory", "JobPrio")
    assert [["x", "y"], ["z"]] == [line.split()[:-2] for line in shown.out.splitlines()]
    assert ["-5", "-7"] == [line.split()[-1] for line in shown.out.splitlines()]
    assert 1 == (await condor("condor_qedit", "1000000.0", "Tag", "1")).status
    assert 1 == (await condor("condor_qedit", f"{cluster}", "Owner", '"nobody"')).status


# -- what was, and what is there -----------------------------------------------------------------------------------------


async def test_what_has_ended_is_in_the_history(condor: Condor, pool: ThrowawayPool) -> None:
    """condor_wait reads the log; the history has the same formats as the queue."""
    cluster = await condor.submitted(f"{ENDS}queue 2\n")
    assert Said(0, "All jobs done.\n", "") == await condor("condor_wait", "log", f"{cluster}")
    wanted = ("condor_history", f"{cluster}.0", f"{cluster}.1", "-af:j", "JobStatus", "ExitCode")
    said = await condor(*wanted)
    assert sorted(said.out.splitlines()) == [f"{cluster}.0 4 3", f"{cluster}.1 4 3"]
    assert 1 == len((await condor(*wanted, "-match", "1")).out.splitlines())
    table = (await condor("condor_history", f"{cluster}", "-limit", "1")).out.splitlines()
    assert " ID     OWNER          SUBMITTED   RUN_TIME     ST COMPLETED   CMD" == table[0]
    assert "C" == table[1].split()[5]
    assert Said(0, "", "") == await condor("condor_history", "1000000", "-json")
    all_of_it = ("condor_history", f"{cluster}", "-af:j", "ClusterId")
    newest = [line.split()[0] for line in (await condor(*all_of_it)).out.splitlines()]
    last = f"ClusterId == {cluster} && ProcId == {newest[-1].partition('.')[2]}"
    for stop, newer in ((newest[0], []), (newest[-1], newest[:-1]), (f"{cluster}", []), (last, newest[:-1])):
        said = await condor(*all_of_it, "-since", stop)
        assert newer == [line.split()[0] for line in said.out.splitlines()], stop
    assert 1 == (await condor("condor_history", "-submitter", "somebody")).status


async def test_no_job_is_in_neither_the_queue_nor_the_history(condor: Condor) -> None:
    """Who does not find a job in the queue asks the history next, and finds it there."""
    for _ in range(10):
        cluster = await condor.submitted(f"{WAITS}queue\n")
        await condor("condor_rm", f"{cluster}.0")
        wanted = (f"{cluster}.0", "-af:j", "JobStatus")
        queued = (await condor("condor_q", *wanted)).out
        assert Said(0, f"{cluster}.0 3\n", "") in {
            Said(0, queued, ""),
            await condor("condor_history", *wanted),
        }


async def test_waiting_may_be_given_up(condor: Condor) -> None:
    cluster = await condor.submitted(f"{WAITS}log = log\nqueue\n")
    assert Said(1, "Time expired.\n", "") == await condor("condor_wait", "-wait", "0", "log")
    assert Said(1, "", "Couldn't open none: No such file or directory\n") == await condor(
        "condor_wait", "none"
    )
    waiting = asyncio.create_task(condor("condor_wait", "-status", "log"))
    await condor("condor_rm", f"{cluster}")
    said = await waiting
    assert (0, "All jobs done.") == (said.status, said.out.splitlines()[-1])


async def test_the_pool_is_shown(condor: Condor) -> None:
    table = (await condor("condor_status")).out.splitlines()
    assert ["Name", "OpSys", "Arch", "State", "Activity", "LoadAv", "Mem", "ActvtyTime"] == table[0].split()
    assert table[2].startswith("slot1@")
    said = await condor("condor_status", "-af:t", "Name", "PartitionableSlot", "TotalCpus * 2")
    assert re.match(r"slot1@\S+\ttrue\t4(\.0)?\n", said.out), said
    said = await condor("condor_status", "-schedd", "-format", "%V\\n", "Name")
    assert '"schedd"\n' == said.out
    assert Said(0, "", "") == await condor("condor_status", "no-machine", "-af", "Name")


async def test_version_and_configuration_are_what_clients_compare(condor: Condor) -> None:
    said = await condor("condor_version")
    first, second = said.out.splitlines()
    assert re.fullmatch(r"\$CondorVersion: 2[4-9]\.\d+\.\d+ \d{4}-\d\d-\d\d .*\$", first)
    assert re.fullmatch(r"\$CondorPlatform: \S+ \$", second)
    assert Said(1, "", "Not defined: MOUNT_UNDER_SCRATCH\n") == await condor(
        "condor_config_val", "MOUNT_UNDER_SCRATCH"
    )
    assert Said(0, "x-y\n", "") == await condor(
        "condor_config_val", "some_knob", _CONDOR_SOME_KNOB="x-$(z)", _condor_Z="y"
    )
    assert f"{condor.place}\n" == (await condor("condor_config_val", "BIN")).out


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("condor_q", "-no-such"), "Unrecognized argument -no-such"),
        (("condor_q", "--nobat"), "Unrecognized argument --nobat"),
        (("condor_q", "-constraint"), "Argument -constraint requires another parameter"),
        (("condor_q", "-af:j"), "Argument -af:j requires another parameter"),
        (("condor_q", "-constraint", "(("), "Parse error"),
        (("condor_q", "1.2.3"), "'1.2.3' is neither"),
        (("condor_rm",), "You did not specify any jobs"),
        (("condor_q", "-pool", "nowhere.example"), "Can't find address for pool nowhere.example"),
    ],
)
async def test_what_cannot_be_meant_is_explained(
    condor: Condor, words: tuple[str, ...], sentence: str
) -> None:
    said = await condor(*words)
    assert (1, "") == (said.status, said.out)
    assert sentence in said.err


async def test_each_command_explains_itself(condor: Condor, place: Path) -> None:
    for path in sorted(place.glob("condor_*")):  # that of nouns and verbs is HTCondor's
        said = await condor(path.name, "-help")
        assert (0, "") == (said.status, said.err)
        assert said.out.startswith(f"usage: {path.name}")


# -- where the pool is, and when it is not there -------------------------------------------------------------------------


async def test_the_pool_is_found_without_any_environment(condor: Condor, pool: ThrowawayPool) -> None:
    """JupyterHub starts its commands with next to none: files say it all."""
    cluster = await condor.submitted(f"{WAITS}queue\n")
    settings = condor.work / ".config" / "kettle"
    settings.mkdir(parents=True)
    (settings / "pool.json").symlink_to(pool.home / "pool.json")
    words = [str(condor.place / "condor_q"), f"{cluster}", "-af", "JobStatus"]
    assert Said(0, "1\n", "") == await execute(words, condor.work, {"HOME": str(condor.work)})


async def test_a_pool_is_named(condor: Condor, pool: ThrowawayPool) -> None:
    cluster = await condor.submitted(f"{WAITS}queue\n")
    words = (f"{cluster}", "-af", "JobStatus")
    empty = condor.work / "empty"
    assert "1\n" == (await condor("condor_q", *words, "-pool", str(pool.home), KETTLE_HOME=str(empty))).out
    assert "1\n" == (await condor("condor_q", *words, "-pool", pool.client.pool.pool)).out
    assert "1\n" == (await condor("condor_q", *words, "-name", "schedd")).out
    said = await condor("condor_q", *words, "-name", "nobody")
    assert (1, "") == (said.status, said.out)
    assert "nobody" in said.err


async def test_a_schedd_that_is_away_for_a_moment_is_waited_for(condor: Condor, pool: ThrowawayPool) -> None:
    """Clients take a query that fails for a job that is gone; and one submission makes one cluster."""
    cluster = await condor.submitted(f"{WAITS}queue\n")
    pid = pool.kill("schedd", signal.SIGSTOP)
    try:
        long = {"_condor_TOOL_PATIENCE": f"{PATIENCE_S}"}
        asked = asyncio.create_task(condor("condor_q", f"{cluster}", "-af", "JobStatus", **long))
        sent = asyncio.create_task(condor("condor_submit", typed=f"{WAITS}queue\n", **long))
        failed = await condor("condor_q", f"{cluster}", "-af", "JobStatus", _condor_TOOL_PATIENCE="3")
    finally:
        os.kill(pid, signal.SIGCONT)
    assert (1, "") == (failed.status, failed.out)
    assert re.fullmatch(r"condor_q: the schedd 'schedd' did not answer within 3 seconds .*\n", failed.err)
    assert Said(0, "1\n", "") == await asked
    assert f"1 job(s) submitted to cluster {cluster + 1}.\n" == (await sent).out.partition("\n")[2]
    assert 2 == len((await condor("condor_q", "-af", "ClusterId")).out.split())


async def test_the_reader_may_go_away(condor: Condor) -> None:
    await condor.submitted(f"{WAITS}queue 2000\n")
    command = f"{condor.place}/condor_q -long | head -n 1"
    said = await execute(["/bin/sh", "-c", command], condor.work, condor.environ)
    assert (0, "") == (said.status, said.err)
    assert 1 == len(said.out.splitlines())


async def test_a_shell_gets_the_commands(condor: Condor, pool: ThrowawayPool) -> None:
    """`kettle condor-env` puts them first, and says it in the language that is wanted."""
    into = condor.work / "a place"
    status, text, _ = await pool.kettle("condor-env", "--into", str(into))
    assert 0 == status
    script = f"{text}command -v condor_q; condor_version | wc -l"
    said = await execute(["/bin/sh", "-c", script], condor.work, condor.environ)
    assert [f"{into}/bin/condor_q", "2"] == said.out.split("\n")[:2]
    _, text, _ = await pool.kettle("condor-env", "--into", str(into), "--json")
    assert str(into / "bin") == json.loads(text)["PATH"]
    _, text, _ = await pool.kettle("condor-env", "--into", str(into), "--csh")
    assert text.startswith(f"setenv PATH '{into}/bin'")
    _, text, _ = await pool.kettle("condor-env", "--into", str(into), "--bin")
    assert f"{into}/bin\n" == text


async def test_a_removed_job_says_why(condor: Condor, pool: ThrowawayPool) -> None:
    job = f"{await condor.submitted(f'{WAITS}queue{os.linesep}')}.0"
    await condor("condor_rm", job, "-reason", "no more")
    removed = await happened(pool.client, job, JobRemoved)
    assert "no more" in removed.reason
