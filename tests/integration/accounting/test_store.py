"""
A store gets one record of each job and attempt, whatever becomes of the store, the bus or accounting meanwhile.
"""

import json
import logging
from pathlib import Path
from typing import Any

import nats
import pytest
from aiohttp import web

from kettle.projections.accounting_documents import Record
from kettle.runtime import Settings
from kettle.testing.patience import PATIENCE_S
from kettle.testing.services import Backend, Owner, eventually, hosted, owned
from kettle_services.accounting.adstash import CONSUMER
from kettle_services.accounting.elasticsearch import BulkStore, NotNowError
from kettle_services.accounting.settings import AccountingSettings
from kettle_services.accounting.wiring import serve
from kettle_wire.attempts import Ending, ExitRecord
from kettle_wire.events import ClusterSubmitted, JobAssigned, JobCompleted, JobRemoved, JobVacated, Usage
from kettle_wire.events.lease import (
    LeaseAccepted,
    LeaseEvent,
    LeaseGone,
    LeaseReady,
    LeaseRequested,
    LeaseSubmitting,
)
from kettle_wire.events.plan import PlanMade
from kettle_wire.worker_pools import Offer

from .bulk_store import BulkServer, bulk_server, certificate

AT = 1_790_000_000_000_000
SHARD = "schedd.ap"
USAGE = Usage(wall=2.0, user_cpu=0.5, system_cpu=0.25)


def settings(backend: Backend, server: BulkServer, **own: object) -> AccountingSettings:
    return backend.settings(AccountingSettings, shard_poll=0.1, store_url=server.url, **own)


async def submit(ap: Owner, cluster: int, count: int, **ad: str | int) -> None:
    event = ClusterSubmitted(
        cluster=cluster, owner="ada", ad={"Cmd": "/bin/true", **ad}, columns=[], rows=[[]] * count
    )
    await ap.record((f"cluster/{cluster}", event), at_us=AT)


async def run(ap: Owner, job: str, tries: int = 1) -> None:
    for attempt in range(1, tries + 1):
        place = JobAssigned(attempt=attempt, claim="c", slot="slot1_1@ep", startd="ep")
        await ap.record((f"job/{job}", place), at_us=AT + attempt)
        end: JobCompleted | JobVacated = JobVacated(
            attempt=attempt, ending=Ending(code=1004, reason="v"), usage=USAGE
        )
        if attempt == tries:
            end = JobCompleted(attempt=attempt, exit=ExitRecord(code=0), usage=USAGE)
        await ap.record((f"job/{job}", end), at_us=AT + 5_000_000 * attempt)


def ids(server: BulkServer, index: str = "kettle-jobs") -> list[str]:
    return sorted(name for where, name in server.documents if where == index)


async def have(server: BulkServer, count: int) -> None:
    async def all_there() -> bool:
        return len(server.documents) >= count

    await eventually(all_there)


async def acknowledged(backend: Backend) -> int:
    """The last frame that the bus need not bring again."""
    joined = backend.settings(Settings)
    client: Any = await nats.connect(  # pyright: ignore[reportUnknownMemberType]
        joined.nats_url.split(","), user_credentials=joined.nats_credentials or None
    )
    try:
        manager = client.jetstream(timeout=PATIENCE_S)
        info = await manager.consumer_info(backend.subjects.event_stream(SHARD), CONSUMER)
    finally:
        await client.close()
    return int(info.ack_floor.stream_seq)


async def noted(backend: Backend, frame: int) -> None:
    """Until then accepted records may be sent again by the next process."""

    async def all_noted() -> bool:
        query = "SELECT min(frame) FROM accounting.taken"
        found: int | None = await backend.log.database.run(lambda c: c.fetchval(query))
        return found == frame

    await eventually(all_noted)


async def test_one_record_for_each_job_and_attempt(backend: Backend) -> None:
    """
    Completed after an eviction, and removed while idle: two jobs, two attempts; what is recorded before accounting is told
    of the store comes too, and nothing twice after a restart.
    """
    async with owned(backend, SHARD) as ap, bulk_server() as server:
        await submit(ap, 1, 3, ProjectName="tau", AcctGroup="phys")
        await run(ap, "1.0", tries=2)
        configured = settings(backend, server, store_attempts="kettle-attempts", store_batch=2)
        async with hosted("accounting", configured, serve):
            await have(server, 3)
            last = await ap.record(("job/1.1", JobRemoved(reason="r")), at_us=AT + 60_000_000)
            await noted(backend, last)
        assert ["ap#1.0#1790000000#1790000010", "ap#1.1#1790000000#1790000060"] == ids(server)
        assert ["ap#1.0#1", "ap#1.0#2"] == ids(server, "kettle-attempts")
        job = server.documents["kettle-jobs", ids(server)[0]]
        assert ("ada", "phys", "tau", "Completed", 1790000010, "ep", "slot1_1", 4, 0) == (
            job["Owner"], job["AcctGroup"], job["ProjectName"], job["Status"], job["RecordTime"], job["StartdName"],
            job["StartdSlot"], job["RemoteWallClockTime"], job["ExitCode"],
        )  # fmt: skip
        attempt = server.documents["kettle-attempts", "ap#1.0#1"]
        assert (2.0, 0.0, 1004, False) == (
            attempt["RemoteWallClockTime"], attempt["CommittedTime"], attempt["VacateReasonCode"], attempt["JobCompleted"],
        )  # fmt: skip
        async with hosted("accounting", configured, serve):
            await ap.record(("job/1.2", JobRemoved(reason="r")), at_us=AT + 61_000_000)
            await have(server, 5)
        assert 5 == len(server.documents)
        assert {1} == set(server.versions.values())


async def lease(scaler: Owner, name: str, *, at: int, ready: bool = True) -> None:
    """A machine that was there for an hour, and has cost 2 EUR."""
    offer = Offer(name="small", provider="cloud", cpus=4, memory=2048, price=2.0, currency="EUR")
    story: list[LeaseEvent] = [
        LeaseRequested(lease=name, pool="lab", offer=offer, life=600.0, until=0.0),
        LeaseSubmitting(attempt=1, until=0.0),
        LeaseAccepted(handle="i", until=0.0),
        *([LeaseReady(until=0.0)] if ready else []),
        LeaseGone(words="terminated", seconds=3600.0, cost=2.0, currency="EUR"),
    ]
    for seconds, event in enumerate(story):
        await scaler.record((f"lease/{name}", event), at_us=at + seconds * 1_000_000)


async def test_a_record_for_each_leased_machine_that_is_gone(backend: Backend) -> None:
    """
    With what it has cost; machines that are there, and what is recorded of pools, have none; after a restart it goes on where it was.
    """
    async with owned(backend, "scaler") as scaler, bulk_server() as server:
        await scaler.record(("plan/made", PlanMade(number=1, inputs="", slots=0, leases=0)), at_us=AT)
        await lease(scaler, "lab-1-1", at=AT)
        configured = settings(backend, server, store_leases="kettle-leases")
        async with hosted("accounting", configured, serve):
            await have(server, 1)
            await lease(scaler, "lab-1-2", at=AT + 10_000_000, ready=False)
            await have(server, 2)
        assert ["lab-1-1", "lab-1-2"] == ids(server, "kettle-leases")
        assert {
            "RecordTime": 1790000004, "RequestedTime": 1790000000, "AcceptedTime": 1790000002, "ReadyTime": 1790000003,
            "StartdName": "lab-1-1", "WorkerPool": "lab", "Offer": "small", "Provider": "cloud", "Cpus": 4, "Memory": 2048,
            "GPUs": 0, "MachineSeconds": 3600.0, "CoreSeconds": 14400.0, "Price": 2.0, "Cost": 2.0, "Currency": "EUR",
            "Reason": "terminated",
        } == server.documents["kettle-leases", "lab-1-1"]  # fmt: skip
        assert "ReadyTime" not in server.documents["kettle-leases", "lab-1-2"]
        async with hosted("accounting", configured, serve):
            await lease(scaler, "lab-1-3", at=AT + 20_000_000)
            await have(server, 3)


async def test_a_store_that_is_busy_or_away(backend: Backend) -> None:
    """
    429 for the whole, 503, an answer that is none, and 429 for some items: all records come, those that were taken not again;
    a request that is too large is halved.
    """
    async with owned(backend, SHARD) as ap, bulk_server() as server:
        await submit(ap, 1, 10)
        for proc in range(10):
            await ap.record((f"job/1.{proc}", JobRemoved(reason="r")), at_us=AT + proc)
        server.whole = [
            web.Response(status=429, headers={"Retry-After": "1"}),
            web.Response(status=503),
            web.Response(text="<html>welcome</html>"),
        ]
        late = [f"ap#1.{proc}#1790000000#1790000000" for proc in (2, 7)]
        server.busy.update({late[0]: 1, late[1]: 2})
        server.most_bytes = 4_000
        async with hosted("accounting", settings(backend, server), serve):
            await have(server, 10)
        assert [f"ap#1.{proc}#1790000000#1790000000" for proc in range(10)] == ids(server)
        assert {1} == set(server.versions.values())
        assert server.requests >= 3 + 1 + 2 + 2


@pytest.mark.parametrize("aside", [True, False])
async def test_a_record_that_is_refused(
    backend: Backend, tmp_path: Path, caplog: pytest.LogCaptureFixture, *, aside: bool
) -> None:
    """
    Each is told with its id and the store's reason. With a file for such records it is there and those behind it come; without
    one nothing behind it is sent, nothing of it is acknowledged on the bus, and all of it as soon as the store takes it.
    """
    file = tmp_path / "refused.ndjson"
    async with owned(backend, SHARD) as ap, bulk_server() as server:
        server.fix("kettle-jobs", "Cmd", int)
        await submit(ap, 1, 1)
        last = await ap.record(("job/1.0", JobRemoved(reason="r")), at_us=AT)
        configured = settings(backend, server, store_refused=str(file) if aside else "")
        with caplog.at_level(logging.ERROR):
            async with hosted("accounting", configured, serve):

                async def told() -> bool:
                    return "refuses a record" in caplog.text

                await eventually(told)
                assert [] == ids(server)
                if not aside:
                    assert await acknowledged(backend) < last
                server.fix("kettle-jobs", "Cmd", str)
                await submit(ap, 2, 1)
                last = await ap.record(("job/2.0", JobRemoved(reason="r")), at_us=AT)
                await have(server, 1 if aside else 2)

                async def all_acknowledged() -> bool:
                    return await acknowledged(backend) == last

                await eventually(all_acknowledged)
        (record,) = [record for record in caplog.records if "refuses a record" in record.message]
        assert "ap#1.0#1790000000#1790000000" == record.__dict__["record"]
        assert "400 mapper_parsing_exception: failed to parse field [Cmd]" in record.__dict__["why"]
        assert [1, 2][aside:] == [int(name[3]) for name in ids(server)]
        if aside:
            action, document = map(json.loads, file.read_text().splitlines())
            assert {"index": {"_index": "kettle-jobs", "_id": record.__dict__["record"]}} == action
            assert "/bin/true" == document["Cmd"]
            assert 0o600 == file.stat().st_mode & 0o777


async def test_an_answer_in_parts() -> None:
    """An answer for many records does not come at once."""
    records = [Record(f"job {number}", {"Owner": "ada"}) for number in range(20_000)]
    async with bulk_server() as server, BulkStore.open(server.url) as store:
        assert records == (await store.send("jobs", records)).taken
    assert len(records) == len(server.documents)


async def test_credentials_and_tls(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """
    The certificate is checked; what the file holds is shown to the store and in no message; a file that others can read is
    not used, and nobody is sent on to another server.
    """
    tls, ca = certificate(tmp_path)
    secret = tmp_path / "store.json"
    secret.write_text('{"api_key": "s3cr3t"}')
    secret.chmod(0o600)
    records = [Record("a", {"Owner": "ada"})]
    async with bulk_server(tls) as server:
        server.authorization = "ApiKey s3cr3t"
        async with BulkStore.open(server.url, credentials=secret) as store:
            with pytest.raises(NotNowError, match="CERTIFICATE_VERIFY_FAILED"):
                await store.send("jobs", records)
        assert 0 == server.requests
        async with BulkStore.open(server.url, credentials=secret, ca=secret) as store:
            with pytest.raises(NotNowError, match=r"store\.json is no file of authorities"):
                await store.send("jobs", records)
        async with BulkStore.open(server.url, credentials=secret, ca=ca) as store:
            assert records == (await store.send("jobs", records)).taken
            secret.write_text('{"user": "ada", "password": "s3cr3t"}')
            with pytest.raises(NotNowError, match="401") as refused:
                await store.send("jobs", records)
            server.whole = [web.Response(status=307, headers={"Location": server.url + "/_bulk"})]
            with pytest.raises(NotNowError, match="307"):
                await store.send("jobs", records)
            secret.chmod(0o644)
            with pytest.raises(NotNowError, match="can be read by others"):
                await store.send("jobs", records)
    assert "s3cr3t" not in caplog.text + str(refused.value)
