"""condor_q as programs read it, to the letter."""

import json
import re
from typing import Any

from kettle.testing.commands.running import Said

from .condor import WAITS, Condor


async def test_of_no_jobs_a_program_gets_nothing(condor: Condor) -> None:
    """Finding none is no failure."""
    header = '<?xml version="1.0"?>\n<!DOCTYPE classads SYSTEM "classads.dtd">\n<classads>\n'
    for words, expected in {
        ("-json",): "",
        ("-long",): "",
        ("-af", "JobStatus"): "",
        ("-format", "%d\n", "ClusterId"): "",
        ("-xml",): f"{header}</classads>\n",
        ("-allusers", "-constraint", 'Cmd == "nothing"', "-json"): "",
    }.items():
        assert Said(0, expected, "") == await condor("condor_q", "1000000", *words), words
    assert "All queues are empty\n" == (await condor("condor_q", "-global")).out
    table = (await condor("condor_q", "-nobatch")).out
    assert (
        "Total for query: 0 jobs; 0 completed, 0 removed, 0 idle, 0 running, 0 held, 0 suspended \n" in table
    )


async def test_the_table_of_jobs_is_the_one_that_programs_read(condor: Condor) -> None:
    """After a line that begins with a blank and ID: first the id, sixth the status, until an empty line."""
    cluster = await condor.submitted(f"{WAITS}queue 2\n")
    await condor("condor_hold", f"{cluster}.1")
    lines = (await condor("condor_q", "-nobatch")).out.splitlines()
    at = lines.index(" ID      OWNER            SUBMITTED     RUN_TIME ST PRI SIZE CMD")
    rows = [line.split() for line in lines[at + 1 : lines.index("", at)]]
    assert [(f"{cluster}.0", "I"), (f"{cluster}.1", "H")] == [(row[0], row[5]) for row in rows]
    assert ["sleep", "100"] == rows[0][8:]
    assert 2 == len([line for line in lines if " 1 idle, 0 running, 1 held, " in line])
    assert lines[2].startswith("-- Schedd: schedd@")
    held = (await condor("condor_q", "-hold")).out
    assert re.search(rf"^ +{cluster}\.1 +\w+ +\d+/\d+ \d\d:\d\d via condor_hold", held, re.MULTILINE), held
    assert f"{cluster}.0 " not in held
    batches = (await condor("condor_q")).out
    assert re.search(rf"^\w+ +ID: {cluster} .* _ +_ +1 +1 +2 {cluster}\.0-1$", batches, re.MULTILINE), batches


async def test_attributes_are_printed_as_they_are_asked_for(condor: Condor) -> None:
    """All letters of -af; attributes may be expressions, of attributes that were not asked for."""
    odd = f'{WAITS}+Quoted = "a \\"b\\""\n+Half = 0.5\n+Whole = RequestCpus + 1\nqueue\n'
    job = f"{await condor.submitted(odd)}.0"
    for options, expected in {
        ("-af", "JobStatus", "Quoted", "Nope", "Half"): '1 a "b" undefined 0.5\n',
        ("-af:j", "JobStatus"): f"{job} 1\n",
        ("-af:jr", "JobStatus", "Whole", "Quoted"): f'{job} 1 RequestCpus + 1 "a \\"b\\""\n',
        ("-af:t", "JobStatus", "Whole", "Whole*2", "Whole > 1"): "1\t2\t4\ttrue\n",
        ("-autof:V", "Quoted", "Nope"): '"a \\"b\\"" undefined\n',
        ("-af:lng", "JobStatus", "Quoted"): '\nJobStatus = 1\nQuoted = a "b"\n',
        ("-af:ln", "JobStatus", "Half"): "JobStatus = 1\n Half = 0.5\n",
        ("-af:,", "JobStatus", "Half"): "1, 0.5\n",
        ("-af:h", "JobStatus"): "JobStatus\n1\n",
        ("-af", "JobStatus", "-limit", "1"): "1\n",
    }.items():
        assert Said(0, expected, "") == await condor("condor_q", job, *options), options


async def test_formats_are_printed_as_by_printf(condor: Condor) -> None:
    """What has no value takes the text around it along; text without a conversion is always there."""
    cluster = await condor.submitted(f'{WAITS}+Name = "x y"\n+Half = 0.5\nqueue\n')
    for options, expected in {
        (r"-format", r"%d.", "ClusterId", "-format", r"%d\n", "ProcId"): f"{cluster}.0\n",
        ("-format", "%s, ", "JobStatus", "-format", "%s", "RemoteHost", "-format", "\n", "True"): "1, \n",
        ("-format", "[%s]", "Nope", "-format", r"\t%V\n", "Nope"): "\tundefined\n",
        ("-format", r"Name = %V\n", "Name"): 'Name = "x y"\n',
        (
            "-format",
            "%5.1f|",
            "Half",
            "-format",
            "%-4d|",
            "ProcId",
            "-format",
            "%d%%",
            "Half",
        ): "  0.5|0   |0%",
        ("-format", "ALWAYS", "ALWAYS"): "ALWAYS",
    }.items():
        assert Said(0, expected, "") == await condor("condor_q", f"{cluster}", *options), options


async def test_whole_ads_are_printed(condor: Condor) -> None:
    cluster = await condor.submitted(f"{WAITS}queue 2\n")
    text = (await condor("condor_q", f"{cluster}", "-json")).out
    assert r'"\/Expr(' in text
    ads: list[dict[str, Any]] = json.loads(text)
    assert [0, 1] == [ad["ProcId"] for ad in ads]
    assert {1} == {ad["JobStatus"] for ad in ads}
    few = json.loads((await condor("condor_q", f"{cluster}.0", "-json", "-attributes", "JobStatus,Cmd")).out)
    assert [{"Cmd": "/bin/sleep", "JobStatus": 1}] == few
    long = (await condor("condor_q", f"{cluster}", "-long")).out
    first, second, rest = long.split("\n\n")
    assert "" == rest
    assert f"\nClusterId = {cluster}\n" in first
    assert "\nProcId = 1\n" in second
    assert f'<a n="ClusterId"><i>{cluster}</i></a>' in (await condor("condor_q", "-xml")).out


async def test_jobs_are_chosen_like_everywhere(condor: Condor) -> None:
    """Ids, clusters, people, conditions; only own jobs where nobody is named."""
    one = await condor.submitted(f"{WAITS}queue 2\n")
    other = await condor.submitted(f"{WAITS}queue\n")
    mine = (await condor("condor_q", "-limit", "1", "-af", "Owner")).out.strip()
    jobs = [f"{one}.0", f"{one}.1", f"{other}.0"]
    for words, expected in {
        (f"{one}.1", f"{other}"): [jobs[1], jobs[2]],
        (): jobs,
        ("-const", "ProcId == 1"): [jobs[1]],
        (f"{one}", "-constraint", "ProcId == 1"): [jobs[1]],
        (mine,): jobs,
        ("-submitter", f"{mine}@somewhere"): jobs,
        ("-submitter", "nobody-else"): [],
        ("-allusers", "-limit", "2"): jobs[:2],
        ("-run",): [],
        ("-idle",): jobs,
    }.items():
        said = await condor("condor_q", *words, "-af:j", "ClusterId")
        assert (0, expected) == (said.status, said.out.split()[::2]), words


async def test_tables_that_options_ask_for(condor: Condor) -> None:
    """Each has the titles of HTCondor's; what cannot be carried out says what to use instead."""
    cluster = await condor.submitted(f"{WAITS}log = jobs.log\nqueue 2\n")
    await condor.submitted(f"{WAITS}max_materialize = 1\nqueue 3\n")
    for words, (title, row) in {
        ("-idle",): (" ID      OWNER          UNIVERSE  CPUS MEMORY STARTS LAST_HOST", f" {cluster}.1 "),
        ("-io",): (" ID      OWNER          RUNS ST  INPUT  OUTPUT  RATE      MISC", ""),
        ("-grid",): (" ID      OWNER          STATUS     GRID->MANAGER    HOST       GRID_JOB_ID", ""),
        ("-cputime",): (" ID      OWNER            SUBMITTED     CPU_TIME ST PRI SIZE CMD", f" {cluster}.1 "),
        ("-currentrun",): (
            " ID      OWNER            SUBMITTED     RUN_TIME ST PRI SIZE CMD",
            f" {cluster}.1 ",
        ),
        ("-factory",): (
            " ID      OWNER            SUBMITTED  LIMIT PRESNT   RUN    IDLE   HOLD NEXTID MODE",
            f" {cluster + 1}. ",
        ),
        ("-jobset",): ("JOBSETID NAME OWNER COMPLETE REMOVED    IDLE RUNNING    HELD", ""),
        ("-userlog", "jobs.log", "-nobatch"): (
            " ID      OWNER            SUBMITTED     RUN_TIME ST PRI SIZE CMD",
            f" {cluster}.1 ",
        ),
    }.items():
        said = await condor("condor_q", *words)
        assert (0, "") == (said.status, said.err), words
        lines = said.out.splitlines()
        assert title == lines[3], words
        assert bool(row) == any(row in f" {line}" for line in lines[4:] if line[:1] == " "), said.out
    for option in ("-autocluster", "-goodput", "-unmatchable"):
        refused = await condor("condor_q", option)
        assert (1, "", True) == (
            refused.status,
            refused.out,
            f"condor_q: {option} is not carried out: " in refused.err,
        )


async def test_jobs_of_files_are_printed_without_a_pool(condor: Condor) -> None:
    """Ads that were printed are read again, of the queue and of the history; so is a job event log."""
    cluster = await condor.submitted(f"{WAITS}log = jobs.log\nqueue 2\n")
    for option in ("-long", "-json", "-xml", "-jsonl"):
        (condor.work / "ads").write_text((await condor("condor_q", f"{cluster}", option)).out)
        again = await condor("condor_q", "-jobads", "ads", "-af:j", "JobStatus", KETTLE_HOME="/nowhere")
        assert Said(0, f"{cluster}.0 1\n{cluster}.1 1\n", "") == again, option
        newest = await condor("condor_history", "-file", "ads", "-limit", "1", "-af", "ProcId")
        assert Said(0, "1\n", "") == newest, option
    since = await condor("condor_history", "-userlog", "jobs.log", "-since", f"{cluster}.0", "-af", "ProcId")
    assert Said(0, "1\n", "") == since
    refused = await condor("condor_history", "-epochs")
    assert (1, True) == (refused.status, "kettle events ID tells what each run of a job did" in refused.err)
