import asyncio

from kettle.bus.nats import NatsBus
from kettle.bus.ports import Post, StreamSpec
from kettle.testing.patience import PATIENCE_S
from kettle.testing.services import Backend, eventually, hosted, owned
from kettle_services.gateway.wiring import serve
from kettle_wire import cloud_events
from kettle_wire.events import JobHeld, MachineJoined

from .submit import AT, SHARD, run, schedd, settings, stored, submitted, told


async def test_each_event_is_one_message(backend: Backend) -> None:
    """
    A submission, what happens to its job and what happens to a machine are told live and stored, each once.
    """
    live: list[str] = []
    async with hosted("gateway", settings(backend), serve), backend.bus() as bus:
        await bus.listen(backend.subjects.tail_all, lambda subject, _data: live.append(subject))
        async with schedd(backend) as ap, owned(backend, "collector") as collector:
            await ap.record(submitted(12))
            await ap.record(*run(12))
            await collector.record(
                ("machine/node1", MachineJoined(machine="node1", cpus=4, memory=8)), at_us=AT
            )
            async with asyncio.timeout(PATIENCE_S):
                events = await told(backend, 4)
                await eventually(lambda: _count(live, 4))
    assert {
        f"{SHARD.replace('.', '%2E')}:1",
        f"{SHARD.replace('.', '%2E')}:2",
        f"{SHARD.replace('.', '%2E')}:3",
        "collector:1",
    } == {event.id for event in events}
    prefix = f"kettle.{backend.place.pool}"
    assert {
        f"{prefix}.tail.alice.12.-.cluster.submitted",
        f"{prefix}.tail.alice.12.0.job.started",
        f"{prefix}.tail.alice.12.0.job.completed",
        f"{prefix}.tail.pool.machine.joined",
    } == set(live)
    assert 4 == len(live)
    assert {
        f"{prefix}.monitor.alice.cluster.submitted",
        f"{prefix}.monitor.alice.job.started",
        f"{prefix}.monitor.alice.job.completed",
        f"{prefix}.tail.pool.machine.joined",
    } == {message.subject for message in await stored(backend, 4)}


async def _count(live: list[str], count: int) -> bool:
    return len(live) >= count


async def test_the_number_of_stored_subjects_does_not_grow_with_jobs(backend: Backend) -> None:
    """A thousand jobs are stored under as many subjects as one."""
    async with hosted("gateway", settings(backend), serve), schedd(backend) as ap:
        await ap.record(submitted(1, jobs=1000))
        for start in range(0, 1000, 100):
            await ap.record(*(change for proc in range(start, start + 100) for change in run(1, proc)))
        async with asyncio.timeout(PATIENCE_S):
            messages = await stored(backend, 2001)
    assert 2001 == len(messages)
    assert 3 == len({message.subject for message in messages})


async def test_a_restart_repeats_nothing_and_leaves_nothing_out(backend: Backend) -> None:
    """What is recorded while no gateway runs is told by the next one, and nothing is told twice."""
    async with schedd(backend) as ap:
        for cluster in range(1, 6):
            await ap.record(submitted(cluster))
        async with hosted("gateway", settings(backend), serve), asyncio.timeout(PATIENCE_S):
            await told(backend, 5)
        for cluster in range(6, 11):
            await ap.record(submitted(cluster))
        async with hosted("gateway", settings(backend), serve), asyncio.timeout(PATIENCE_S):
            events = await told(backend, 10)
            await ap.record(submitted(11))
            events = await told(backend, 11)
    assert [f"cluster/{n}" for n in range(1, 12)] == [event.subject for event in events]


async def test_the_stream_itself_remembers_what_was_told(backend: Backend) -> None:
    """A new session of a gateway, after any time, stores nothing twice."""
    async with schedd(backend) as ap, backend.bus() as bus:
        await ap.record(submitted(1), submitted(2))
        async with hosted("gateway", settings(backend), serve), asyncio.timeout(PATIENCE_S):
            await told(backend, 2)
        async with hosted("gateway", settings(backend), serve), asyncio.timeout(PATIENCE_S):
            await ap.record(submitted(3))
            events = await told(backend, 3)
            assert 3 == await bus.last_sequence(backend.subjects.monitor_stream)
    assert ["cluster/1", "cluster/2", "cluster/3"] == [event.subject for event in events]


async def test_a_cluster_that_was_submitted_long_before_has_its_owner(backend: Backend) -> None:
    """A gateway that never saw the submission asks the schedd, once for a cluster."""
    async with schedd(backend) as ap:
        await ap.record(submitted(7, jobs=3, owner="bob"))
        async with hosted("gateway", settings(backend), serve), asyncio.timeout(PATIENCE_S):
            await told(backend, 1)
        assert [] == ap.asked
        async with hosted("gateway", settings(backend), serve), asyncio.timeout(PATIENCE_S):
            for proc in range(3):
                await ap.record(*run(7, proc))
            messages = await stored(backend, 7)
        assert [7] == ap.asked
    assert {"bob"} == {cloud_events.decode(message.data).owner for message in messages}
    assert all(".monitor.bob." in message.subject for message in messages)


async def test_events_wait_for_a_schedd_that_does_not_answer_and_others_do_not(backend: Backend) -> None:
    """
    While one schedd is silent about whose a cluster is, other shards go on; nothing is told under a wrong name.
    """
    async with schedd(backend) as ap:
        await ap.record(submitted(7))
        async with hosted("gateway", settings(backend), serve), asyncio.timeout(PATIENCE_S):
            await told(backend, 1)
    async with hosted("gateway", settings(backend), serve), asyncio.timeout(PATIENCE_S):
        async with schedd(backend, answers=False) as ap, owned(backend, "collector") as collector:
            await ap.record(*run(7))
            await collector.record(("machine/m", MachineJoined(machine="m", cpus=1, memory=1)), at_us=AT)
            assert ["cluster/7", "machine/m"] == [event.subject for event in await told(backend, 2)]
        async with schedd(backend):
            events = await told(backend, 4)
    assert ["7.0", "7.0"] == [event.subject for event in events[2:]]
    assert {"alice"} == {event.owner for event in events[2:]}


async def test_what_the_bus_lost_the_owner_has(backend: Backend) -> None:
    """Frames that left the stream before the gateway read them are asked for at their owner."""
    async with schedd(backend) as ap, backend.bus() as bus:
        await ap.record(submitted(1))
        async with hosted("gateway", settings(backend), serve), asyncio.timeout(PATIENCE_S):
            await told(backend, 1)
        for cluster in range(2, 6):
            await ap.record(submitted(cluster))
        await eventually(lambda: _at(bus, 5))
        await bus._jetstream._call(  # pyright: ignore[reportPrivateUsage]
            f"STREAM.PURGE.{backend.subjects.event_stream(SHARD)}", b""
        )
        await ap.record(submitted(6))
        async with hosted("gateway", settings(backend), serve), asyncio.timeout(PATIENCE_S):
            events = await told(backend, 6)
    assert [f"cluster/{n}" for n in range(1, 7)] == [event.subject for event in events]


async def _at(bus: NatsBus, frame: int) -> bool:
    return await bus.last_sequence(bus.subjects.event_stream(SHARD)) == frame


async def test_a_lost_tail_of_the_stream_is_told_again(backend: Backend) -> None:
    """What the server lost of MONITOR is stored again from the log, although the frames were acknowledged."""
    async with schedd(backend) as ap, backend.bus() as bus:
        for cluster in range(1, 4):
            await ap.record(submitted(cluster))
            async with hosted("gateway", settings(backend), serve), asyncio.timeout(PATIENCE_S):
                await told(backend, cluster)
        stream = backend.subjects.monitor_stream
        kept = (await stored(backend, 3))[0]
        note = await bus._jetstream.header(stream, 1, "Kettle-Note")  # pyright: ignore[reportPrivateUsage]
        await bus.delete_stream(stream)
        await bus.ensure_stream(
            StreamSpec(name=stream, subjects=[backend.subjects.tail_all], together=True, remake=False)
        )
        await bus.append_together(
            [Post(backend.subjects.tail_pool("old.one"), kept.data)], expect_last=0, note=note
        )
        async with hosted("gateway", settings(backend), serve), asyncio.timeout(PATIENCE_S):
            await ap.record(submitted(4))
            events = await told(backend, 4)
    assert [f"cluster/{n}" for n in range(1, 5)] == [event.subject for event in events]


async def test_a_frame_too_large_for_a_batch_is_told_in_parts(backend: Backend) -> None:
    """More events than the server takes at once are told in order, none twice."""
    async with schedd(backend) as ap, hosted("gateway", settings(backend), serve):
        held = JobHeld(code=1, reason="x")
        await ap.record(submitted(1, jobs=2500), *((f"job/1.{proc}", held) for proc in range(2500)))
        async with asyncio.timeout(PATIENCE_S):
            events = await told(backend, 2501)
    assert ["cluster/1", *(f"1.{proc}" for proc in range(2500))] == [event.subject for event in events]


async def test_an_event_that_is_too_large_is_told_without_its_data(backend: Backend) -> None:
    """The envelope says where the event is, and how many jobs it submits."""
    async with schedd(backend) as ap, hosted("gateway", settings(backend, max_event_bytes=2000), serve):
        await ap.record(submitted(1, jobs=5, Note="x" * 3000), submitted(2))
        async with asyncio.timeout(PATIENCE_S):
            large, small = await told(backend, 2)
    assert cloud_events.event_of(large) is None
    assert (f"/kettle/{backend.place.pool}/schedd%2Eap1/1", 5, "") == (
        large.dataref,
        large.jobs,
        large.datacontenttype,
    )
    assert cloud_events.event_of(small) is not None
    assert "" == small.dataref
