"""
Programs written for HTCondor's Python modules run against a pool: each as a process that finds ours in their place.
"""

import asyncio
import os
import sys
from pathlib import Path
from typing import Any, Final

import msgspec
import pytest

from kettle.testing.throwaway_pool import ThrowawayPool

MODULES: Final = Path(__file__).parents[2] / "services" / "kettle_services" / "condor" / "python"
WITHIN_S: Final = 120.0


@pytest.fixture(scope="module")
def configuration() -> dict[str, Any]:
    return {"cpus": 4}


async def said(pool: ThrowawayPool, place: Path, program: str) -> Any:
    """What a program leaves in `answer` when it has run with our modules."""
    path = place / "program.py"
    path.write_text(f"{program}\nimport json\nprint(json.dumps(answer, default=str))\n")
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        str(path),
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        env={**os.environ, "KETTLE_HOME": str(pool.home), "PYTHONPATH": str(MODULES)},
        cwd=place,
    )
    async with asyncio.timeout(WITHIN_S):
        out, err = await process.communicate()
    assert 0 == process.returncode, err.decode()
    assert "" == err.decode()
    return msgspec.json.decode(out.splitlines()[-1])


async def test_a_job_from_its_description_to_its_history(pool: ThrowawayPool, tmp_path: Path) -> None:
    """The way of most clients: submit, look, follow the log to the end, read the history."""
    answer = await said(
        pool,
        tmp_path,
        """
import htcondor2, time

schedd = htcondor2.Schedd()
result = schedd.submit(htcondor2.Submit({
    "executable": "/bin/true", "transfer_executable": False, "log": "job.log",
    "request_memory": 16, "+Mine": '"yes"', "hold": True,
}), count=1)
cluster = result.cluster()
queued = schedd.query(f"ClusterId == {cluster}", ["ClusterId", "ProcId", "Mine", "JobStatus"])
schedd.act(htcondor2.JobAction.Release, [f"{cluster}.0"])
import os
while not os.path.exists("job.log"):
    time.sleep(0.05)
seen = []
for event in htcondor2.JobEventLog("job.log").events(stop_after=60):
    assert event.cluster == cluster
    seen.append(event.type.name)
    if event.type is htcondor2.JobEventType.JOB_TERMINATED:
        returned = event["ReturnValue"]
        break
past = []
while not past:
    past = schedd.history(f"ClusterId == {cluster}", ["ExitCode", "Mine"], match=1)
answer = [int(result), cluster, result.num_procs(), [dict(ad) for ad in queued], seen, returned,
    [dict(ad) for ad in past], schedd.query(f"ClusterId == {cluster}")]
""",
    )
    number, cluster, count, [queued], seen, returned, past, left = answer
    assert (number, 1) == (cluster, count)
    assert (cluster, 0, "yes") == (queued["ClusterId"], queued["ProcId"], queued["Mine"])
    assert 5 == queued["JobStatus"]
    assert ("SUBMIT", "JOB_TERMINATED") == (seen[0], seen[-1])
    assert (0, [{"ExitCode": 0, "Mine": "yes"}], []) == (returned, past, left)


_LONG: Final = {
    "executable": "/bin/sleep",
    "arguments": "600",
    "transfer_executable": "False",
    "request_memory": "1000000000",
}


async def test_jobs_are_held_edited_released_and_removed(pool: ThrowawayPool, tmp_path: Path) -> None:
    """The way of WMCore and CRAB: items as dictionaries, acts by list and by constraint, a summary."""
    answer = await said(
        pool,
        tmp_path,
        f"""
import htcondor2, classad2
schedd = htcondor2.Schedd()
sub = htcondor2.Submit({_LONG!r})
sub["arguments"] = "$(seconds)"
sub["My.WM"] = '"$(name)"'
sub["leave_in_queue"] = "true"
result = schedd.submit(sub, itemdata=iter([{{"name": "a", "seconds": "600"}}, {{"name": "b", "seconds": "601"}}]))
c = result.cluster()
mine = f"ClusterId == {{c}}"
schedd.act(htcondor2.JobAction.Hold, c, reason="wait")
held = schedd.query(constraint=mine, projection=["WM", "JobStatus", "HoldReasonCode"])
summary = schedd.query(mine, opts=htcondor2.QueryOpt.SummaryOnly)[0]
edited = schedd.edit(mine, "JobPrio", classad2.ExprTree("7"))
edited += schedd.edit([f"{{c}}.0"], "Note", '"seen"')
released = schedd.act(htcondor2.JobAction.Release, [f"{{c}}.0"], reason="go")
again = schedd.act(htcondor2.JobAction.Release, [f"{{c}}.0", "{{}}.7".format(c)])
after = schedd.query(classad2.ExprTree(mine), ["ProcId", "JobPrio", "Note", "JobStatus"])
removed = schedd.act(action=htcondor2.JobAction.Remove, job_spec=mine, reason="enough")
forced = schedd.act(htcondor2.JobAction.RemoveX, mine)
missing = ""
try:
    schedd.edit("ClusterId == 999999", "JobPrio", "1")
except htcondor2.HTCondorException as error:
    missing = str(error)
told = []
schedd.query(mine, callback=lambda ad: told.append(ad["ProcId"]))
answer = [[dict(ad) for ad in held], dict(summary), edited, dict(released), dict(again),
    [{{k: ad.eval(k) for k in ad}} for ad in after], dict(removed), missing, dict(forced)]
""",
    )
    held, summary, edited, released, again, after, removed, missing, forced = answer
    assert [("a", 5), ("b", 5)] == [(ad["WM"], ad["JobStatus"]) for ad in held]
    assert (2, 2) == (summary["Jobs"], summary["Held"])
    assert 3 == edited
    assert (1, 0, 1) == (released["TotalSuccess"], released["TotalError"], released["TotalChangedAds"])
    assert (0, 1) == (again["TotalSuccess"], again["TotalNotFound"])
    assert [7, 7] == [ad["JobPrio"] for ad in after]
    assert ["seen", None] == [ad.get("Note") for ad in after]
    assert (2, 2) == (removed["TotalSuccess"], removed["TotalChangedAds"])
    assert "no such jobs" in missing
    assert (2, 0) == (forced["TotalSuccess"], forced["TotalError"])


async def test_the_pool_is_found_through_its_collector(pool: ThrowawayPool, tmp_path: Path) -> None:
    """The way of fifemon, lpcjobqueue, joblib-htcondor and LSST: locate, query, priorities, param."""
    answer = await said(
        pool,
        tmp_path,
        """
import time
import htcondor2, htcondor, classad2, classad
for h in (htcondor2, htcondor):
    collector = h.Collector(h.param["COLLECTOR_HOST"])
    while not (startds := collector.query(h.AdTypes.Startd, "PartitionableSlot =?= True", ["Name", "TotalCpus"])):
        time.sleep(0.1)
    while not (schedds := collector.query(ad_type=h.AdType.Schedd, constraint=True, projection=["Name"])):
        time.sleep(0.1)
    ad = collector.locate(h.DaemonTypes.Schedd)
    named = collector.locate(h.DaemonType.Schedd, ad["name"])["Name"]
    queue = h.Schedd(ad)
    jobs = queue.query("true", ["ClusterId"])
    direct = collector.directQuery(h.DaemonType.Schedd, projection=["TotalRunningJobs"])
    lost = []
    try:
        collector.locate(h.DaemonType.Schedd, "nobody")
    except (h.HTCondorException, ValueError) as error:
        lost = [isinstance(error, ValueError), str(error)]
    negotiators = collector.locateAll(h.DaemonTypes.Negotiator)
    priorities = h.Negotiator(negotiators[0]).getPriorities()
sec = htcondor.SecMan()
pinged = sec.ping(ad, "WRITE")
heard = sec.ping(htcondor.Collector().locate(htcondor.DaemonTypes.Collector))
sec.invalidateAllSessions()
htcondor.param["TOUCHED"] = "1"
copied = {k: type(v).__name__ for k, v in htcondor.param.items() if k.startswith("DAGMAN_")}
answer = [[dict(a) for a in startds], [dict(a) for a in schedds], dict(ad), named == ad["NAME"], dict(direct), lost,
    [sorted(p) for p in priorities], [dict(pinged), dict(heard)], htcondor.param["touched"], copied["DAGMAN_MAX_JOBS_IDLE"],
    "DAGMAN_USE_STRICT" in htcondor.param]
""",
    )
    startds, schedds, ad, same, direct, lost, priorities, pinged, touched, kind, known = answer
    assert [4] == [one["TotalCpus"] for one in startds]
    assert [ad["Name"]] == [one["Name"] for one in schedds]
    assert {"MyAddress", "CondorVersion"} <= set(ad)
    assert same
    assert "TotalRunningJobs" in direct
    assert lost[0]
    assert "nobody" in lost[1]
    assert all({"Name", "Priority", "ResourcesUsed", "AccumulatedUsage"} <= set(one) for one in priorities)
    assert [True, True] == [each["AuthorizationSucceeded"] for each in pinged]
    assert ("1", "int", True) == (touched, kind, known)


async def test_version_1_queues_in_transactions(pool: ThrowawayPool, tmp_path: Path) -> None:
    """The way of Toil and HTMap; a block that fails takes its jobs along."""
    answer = await said(
        pool,
        tmp_path,
        f"""
import htcondor, classad
schedd = htcondor.Schedd()
list(schedd.xquery(limit=0))
sub = htcondor.Submit({_LONG!r})
sub["arguments"] = b"600"
sub["+IsToilJob"] = "True"
with schedd.transaction() as txn:
    first = sub.queue(txn)
with schedd.transaction() as txn:
    many = sub.queue_with_itemdata(txn, 1, iter([{{"component": str(i)}} for i in range(3)]))
failed = None
try:
    with schedd.transaction() as txn:
        failed = sub.queue(txn, 2)
        raise ZeroDivisionError
except ZeroDivisionError:
    pass
ads = []
raw = schedd.submit(next(sub.jobs()), 2, False, ads)
both = schedd.submitMany(next(sub.jobs()), [(classad.ClassAd({{"Mine": 1}}), 1), (classad.ClassAd({{"Mine": 2}}), 2)])
mine = [ad["Mine"] for ad in schedd.query(f"ClusterId == {{both}}")]
thrown = schedd.act(htcondor.JobAction.Remove, [str(raw), str(both)])["TotalSuccess"]
found = schedd.xquery(requirements="IsToilJob && ClusterId >= %d" % first, projection=["ClusterId", "ProcId"])
ids = [(ad["ClusterId"], ad["ProcId"]) for ad in found]
one = schedd.xquery(f"ClusterId == {{first}}").next()
schedd.edit([f"{{first}}.0"], "ToilJobKilled", "True")
left = schedd.query("ToilJobKilled =?= True", attr_list=["ClusterId"])
ad = schedd.act(htcondor.JobAction.Remove, f"ClusterId >= {{first}}")
gone = schedd.query("IsToilJob")
past = next(schedd.history(f"ClusterId == {{first}}", ["ClusterId"], 1))
answer = [first, many.cluster(), many.num_procs(), failed, ids, one["Args"] if "Args" in one else one["Arguments"],
    [dict(a) for a in left], ad["TotalSuccess"], len(gone), past["ClusterId"], type(past).__module__,
    [len(ads), mine, thrown]]
""",
    )
    first, second, count, failed, ids, arguments, left, removed, gone, past, module, raw = answer
    assert [[first, 0], *[[second, proc] for proc in range(3)]] == ids
    assert (3, "600") == (count, arguments)
    assert failed not in {first, second}
    assert [{"ClusterId": first}] == [{"ClusterId": ad["ClusterId"]} for ad in left]
    assert (4, 0, first) == (removed, gone, past)
    assert "classad" in module
    assert [2, [1, 2, 2], 5] == raw


async def test_several_threads_share_a_schedd(pool: ThrowawayPool, tmp_path: Path) -> None:
    answer = await said(
        pool,
        tmp_path,
        f"""
import htcondor2
from concurrent.futures import ThreadPoolExecutor
schedd = htcondor2.Schedd()
def work(number):
    sub = htcondor2.Submit({_LONG!r})
    sub["+Thread"] = str(number)
    cluster = schedd.submit(sub, count=2).cluster()
    return cluster, [ad["Thread"] for ad in schedd.query(f"ClusterId == {{cluster}}")]
with ThreadPoolExecutor(8) as threads:
    done = list(threads.map(work, range(16)))
removed = schedd.act(htcondor2.JobAction.Remove, [str(cluster) for cluster, _ in done])
answer = [len({{cluster for cluster, _ in done}}), [seen for _, seen in done], removed["TotalSuccess"]]
""",
    )
    clusters, seen, removed = answer
    assert (16, 32) == (clusters, removed)
    assert [[number, number] for number in range(16)] == seen


async def test_what_is_not_there_is_told(pool: ThrowawayPool, tmp_path: Path) -> None:
    """No call succeeds that did nothing: what cannot be done raises what clients of either version catch."""
    answer = await said(
        pool,
        tmp_path,
        f"""
import htcondor, htcondor2
schedd = htcondor.Schedd()
sub = htcondor.Submit({_LONG!r})
tries = {{
    "credential": lambda: htcondor.Credd().add_user_cred(htcondor.CredTypes.Kerberos, None),
    "advertise": lambda: htcondor.Collector().advertise([]),
    "refused": lambda: schedd.submit(htcondor.Submit({{"executable": "/nowhere/nothing"}})),
    "edit": lambda: schedd.edit("ClusterId >= 0", "Owner", '"root"'),
}}
answer = {{}}
for name, call in tries.items():
    try:
        answer[name] = repr(call())
    except htcondor.HTCondorException as error:
        answer[name] = ["raised", str(error)]
""",
    )
    assert ["raised"] * len(answer) == [one[0] for one in answer.values()], answer
    assert "nothing" in answer["refused"][1]


async def test_histories_end_where_a_client_says(pool: ThrowawayPool, tmp_path: Path) -> None:
    """At a cluster, a job, an expression, or, as snakemake has it, at a time."""
    answer = await said(
        pool,
        tmp_path,
        f"""
import htcondor2, time
schedd = htcondor2.Schedd()
sub = htcondor2.Submit({_LONG!r})
clusters = []
for _ in range(3):
    clusters.append(schedd.submit(sub).cluster())
    schedd.act(htcondor2.JobAction.Remove, clusters[-1:])
while len(schedd.history(f"ClusterId >= {{clusters[0]}}", ["ClusterId"])) < 3:
    time.sleep(0.05)
def since(end):
    return [ad["ClusterId"] for ad in schedd.history(f"ClusterId >= {{clusters[0]}}", ["ClusterId"], since=end)]
a, b, c = clusters
answer = [since(None) == [c, b, a], since(b) == [c], since(f"{{a}}.0") == [c, b], since(f"ClusterId == {{b}}") == [c],
    since(int(time.time()) + 100) == [], since(int(time.time()) - 1000) == [c, b, a],
    [ad["ClusterId"] for ad in schedd.history(f"ClusterId >= {{a}}", match=2)] == [c, b]]
""",
    )
    assert [True] * 7 == answer
