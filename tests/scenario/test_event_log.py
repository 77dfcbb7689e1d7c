"""Job event logs in their forms, and that of the access point, in real pools."""

import asyncio
import re
import signal
from collections import Counter
from contextlib import aclosing, suppress
from itertools import cycle
from pathlib import Path

from kettle.bindings.job_event_log import JobEventLog
from kettle.client import select
from kettle.faults import POINTS
from kettle.pool.personal_settings import Value
from kettle.testing.throwaway_pool import ThrowawayPool, throwaway_pool
from kettle.userlog import (
    ClusterSubmit,
    Executing,
    FileTransfer,
    Form,
    JobAdInformation,
    LogEvent,
    Submitted,
    Terminated,
    parse,
)
from kettle_wire.jobs import JobId

from .job_log import logged, written

WITHIN_S = 240.0
PLACES = [name for name in POINTS if name.startswith("event_log.")]
FIRST = {"event_log.saved", "event_log.shifted"}
"""Places that a short life passes once."""


def at_each(directory: Path) -> dict[str, str]:
    """The variables with which a shadow dies at each place, once."""
    faults = (f"{name}=kill@{1 if name in FIRST else 3}" for name in PLACES)
    return {"KETTLE_FAULT_POINTS": ",".join(faults), "KETTLE_FAULT_ONCE": str(directory)}


async def finished(pool: ThrowawayPool, description: str, work: Path) -> int:
    """The number of a cluster that was submitted, and has left the queue."""
    submitted = await pool.client.submit(description, cwd=work)
    async with asyncio.timeout(WITHIN_S), aclosing(pool.client.watch(select(submitted.cluster))) as watched:
        async for _ in watched:
            pass
    return submitted.cluster


def events_of(text: str) -> list[str]:
    return re.findall(r"(?:.+\n)*?(?:.*\n)*?\.\.\.\n", text)


def all_of(path: Path) -> list[str]:
    """The events of the log and of what was put aside, in their order, without headings."""
    files = sorted(path.parent.glob(f"{path.name}.*"), key=lambda file: -int(file.suffix[1:]))
    texts = [event for file in (*files, path) for event in events_of(file.read_text())]
    return [text for text in texts if "Global JobLog: " not in text]


def kind(event: LogEvent) -> tuple[int, JobId, int, int]:
    """What there is once of each job that runs once."""
    return event.number, event.job, int(event.at), event.kind if isinstance(event, FileTransfer) else 0


async def test_killed_at_every_step(tmp_path: Path, template: Path) -> None:
    """
    The access point's log says what the jobs' own logs say, in text and in XML: each event once, whatever step of writing
    it was the last one of a shadow.
    """
    (tmp_path / "done").mkdir()
    (tmp_path / "work").mkdir()
    settings: dict[str, dict[str, Value]] = {
        "shadow": {"event_log": "EventLog", "event_log_max_size": 3000, "event_log_max_rotations": 1000},
        "master": {"environment": {"shadow": at_each(tmp_path / "done")}},
    }
    common = "executable = /bin/true\nrequest_memory = 16\n"
    descriptions = cycle((f"{common}log = log\nqueue 10\n", f"{common}log = xml\nlog_xml = true\nqueue 10\n"))
    async with throwaway_pool(tmp_path, cpus=4, template=template, settings=settings) as pool:
        async with asyncio.timeout(WITHIN_S):
            while not (
                pool.home / "state" / "eventlog.schedd"
            ).exists():  # nothing is told of what was before
                await asyncio.sleep(0.05)
            clusters = 0
            while clusters < 3 or set(PLACES) - {path.name for path in (tmp_path / "done").iterdir()}:
                await finished(pool, next(descriptions), tmp_path / "work")
                clusters += 1
                # A cursor is saved when its shadow is asked to end, at the latest.
                if not (tmp_path / "done" / "event_log.saved").exists():
                    before = pool.pid("shadow")
                    with suppress(ProcessLookupError):  # it has just ended at a step by itself
                        pool.kill("shadow", signal.SIGTERM)
                    await pool.restarted("shadow", after=before)
        own = await written(tmp_path / "work" / "log", "Job terminated.\n", times=10 * -(-clusters // 2))
        xml = await written(tmp_path / "work" / "xml", "JobTerminatedEvent", times=10 * (clusters // 2))
        expected = Counter(map(kind, parse(own) + parse(xml)))
        assert {1} == set(expected.values())
        async with asyncio.timeout(WITHIN_S):
            while True:
                with suppress(FileNotFoundError):  # a file was put aside between two looks
                    if len(all_of(pool.home / "EventLog")) >= expected.total():
                        break
                await asyncio.sleep(0.05)
        everything = all_of(pool.home / "EventLog")
        assert expected == Counter(map(kind, parse("".join(everything))))
        assert not Counter(events_of(own)) - Counter(everything)
    assert [] == pool.left


async def test_forms_and_attributes(tmp_path: Path, template: Path) -> None:
    """
    What a description says of its log is in the log: its form, notes, attributes of the slot and of the job.
    """
    settings: dict[str, dict[str, Value]] = {
        "shadow": {
            "default_userlog_format_options": "JSON, UTC, SUB_SECOND",
            "event_log": "EventLog",
            "event_log_format_options": "XML",
            "event_log_job_ad_information_attrs": "Owner, JobStatus",
        }
    }
    common = "executable = /bin/true\nrequest_memory = 16\nsubmit_event_user_notes = mine\n"
    async with throwaway_pool(tmp_path, cpus=2, template=template, settings=settings) as pool:
        async with asyncio.timeout(WITHIN_S):
            while not (pool.home / "state" / "eventlog.schedd").exists():
                await asyncio.sleep(0.05)
        xml = "log = xml.log\nlog_xml = true\nulog_execute_attrs = Arch\nsubmit_event_notes = DAG Node: A\n"
        more = "job_ad_information_attrs = JobStatus\ndagman_log = nodes.log\ndagman_job_id = 77\n"
        cluster = await finished(pool, f"{common}{xml}{more}queue\n", tmp_path)
        late = await finished(pool, f"{common}log = json.log\nmax_idle = 1\nqueue 3\n", tmp_path)

        events = await logged(tmp_path / "xml.log", Terminated)
        assert Form.XML is Form.of((tmp_path / "xml.log").read_text())
        [submitted] = [event for event in events if isinstance(event, Submitted)]
        assert ["DAG Node: A", "mine"] == submitted.notes
        [executing] = [event for event in events if isinstance(event, Executing)]
        assert "Arch" in dict(executing.attributes)
        told = [event.attributes for event in events if isinstance(event, JobAdInformation)]
        assert (1, "ULOG_SUBMIT") == (told[0]["JobStatus"], told[0]["TriggerEventTypeName"])
        assert 2 in {each["JobStatus"] for each in told}

        nodes = await logged(tmp_path / "nodes.log", Terminated)
        assert Form.CLASSIC is Form.of((tmp_path / "nodes.log").read_text())
        assert [0, 1, 5] == [event.number for event in nodes if not isinstance(event, FileTransfer)]

        text = await written(tmp_path / "json.log", "ClusterRemoveEvent")
        numbers = [event.number for event in parse(text)]
        assert (35, 36) == (numbers[0], numbers[-1])
        assert re.search(r'"EventTime": "\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z"', text)

        await written(pool.home / "EventLog", "ClusterRemoveEvent")
        whole = JobEventLog(str(pool.home / "EventLog"))
        seen = [(event.type, event.cluster, event.get("Owner")) for event in whole.events(stop_after=0)]
        assert 8 == seen[0][0]
        assert {(28, cluster, pool.client.pool.user), (28, late, pool.client.pool.user)} <= set(seen)
        assert (ClusterSubmit.number, late, None) in seen
    assert [] == pool.left


async def test_a_log_that_cannot_be_written(tmp_path: Path, template: Path) -> None:
    """Jobs do not wait for it, and nothing is missing when it can be written again."""
    (tmp_path / "place").write_text("a file\n")
    settings: dict[str, dict[str, Value]] = {
        "shadow": {"event_log": str(tmp_path / "place" / "EventLog"), "event_log_retry": 0.2}
    }
    async with throwaway_pool(tmp_path, cpus=2, template=template, settings=settings) as pool:
        async with asyncio.timeout(WITHIN_S):
            while not (pool.home / "state" / "eventlog.schedd").exists():
                await asyncio.sleep(0.05)
        await finished(pool, "executable = /bin/true\nlog = log\nqueue 2\n", tmp_path)
        own = await written(tmp_path / "log", "005 (", times=2)
        (tmp_path / "place").unlink()
        (tmp_path / "place").mkdir()
        await written(tmp_path / "place" / "EventLog", "005 (", times=2)
        assert Counter(events_of(own)) == Counter(all_of(tmp_path / "place" / "EventLog"))
    assert [] == pool.left
