"""What a pool is told of a schedd, whatever one of its submitters does."""

import asyncio
from collections.abc import Mapping
from pathlib import Path
from typing import Final

import msgspec

from kettle.bus.ports import BusError
from kettle.testing.bus_adapters import MemoryWorld
from kettle_services.schedd.domain.negotiation.concurrency_limits import MOST_NAMES
from kettle_services.schedd.negotiation.advertiser import ScheddAdvertiser
from kettle_services.schedd.settings import ScheddSettings
from kettle_wire.ads import Ad, Scalar
from kettle_wire.ads.daemon import SubmitterAd
from kettle_wire.commands.schedd import MatchedSlot
from kettle_wire.events import ClaimEnded, ClaimGranted, ClusterSubmitted, JobEdited
from kettle_wire.identity import daemon
from kettle_wire.jobs import JobId
from kettle_wire.subjects import ad_key

from .test_run_now import Schedd, schedd, so

LIMITED: Final = JobId(2, 0)


async def adverts(ap: Schedd, *, too_large: str = "") -> tuple[ScheddAdvertiser, dict[str, bytes]]:
    """Adverts on a bus that takes all ads but one, and what it took."""
    world, taken = MemoryWorld(), dict[str, bytes]()
    bus = await world.connect(daemon("schedd"))

    async def put(bucket: str, key: str, value: bytes, *, ttl: float | None = None) -> None:
        if key == too_large:
            raise BusError("a message of 9000000 bytes; the server's max_payload allows 8000000")
        taken[key] = value

    bus.put = put  # type: ignore[method-assign]  # a limit that a bus in memory has not
    settings = ScheddSettings(name="ap")
    return ScheddAdvertiser(bus, world.subjects, ap.recorder.queue, ap.claims.requester, settings), taken


async def record(ap: Schedd, claim: str, limits: Mapping[str, float]) -> None:
    granted = ClaimGranted(
        claim=claim,
        startd="ep",
        slot="s@ep",
        slot_ad={},
        submitter="eve",
        autocluster=0,
        lease=9.0,
        limits=dict(limits),
    )
    await ap.recorder.record([(f"claim/{claim}", granted)])


async def test_an_ad_that_is_too_large_keeps_no_other_from_the_pool(tmp_path: Path) -> None:
    """The submitters after it and the schedd are published all the same."""
    async with schedd(tmp_path) as ap:
        event = ClusterSubmitted(cluster=2, owner="zoe", ad={"Cmd": "x"}, columns=[], rows=[[]])
        await ap.recorder.record([("cluster/2", event)])
        shown, taken = await adverts(ap, too_large=ad_key("Submitter", "eve@ap"))
        running = asyncio.create_task(shown.publish_ads())

        await so(lambda: ad_key("Scheduler", "ap") in taken)

        assert {ad_key("Submitter", "zoe@ap"), ad_key("Scheduler", "ap")} == set(taken)
        running.cancel()


async def test_a_submitter_uses_no_more_limits_than_its_ad_can_name(tmp_path: Path) -> None:
    """
    Until a claim ends its jobs with limits are shown to nobody and take no matches; those without are as before.
    """
    async with schedd(tmp_path) as ap:
        await ap.submit({"ConcurrencyLimits": "x", "RequestCpus": 2}, count=1)
        shown, _ = await adverts(ap)
        free, limited = (ap.recorder.queue.autocluster(job) for job in (JobId(1, 1), LIMITED))

        def requested() -> set[int]:
            ad = shown.submitter_ad("eve")
            assert ad is not None
            return {request.autocluster for request in ad.requests}

        await record(ap, "many", {f"l{n}": 1.0 for n in range(MOST_NAMES - 1)})
        assert {free, limited} == requested()
        await record(ap, "one", {"another": 1.0})
        assert {free} == requested()
        match = MatchedSlot(
            submitter="eve",
            autocluster=limited,
            count=1,
            slot="s@ep",
            startd="ep",
            capability="k",
            limits={"x": 1.0},
        )
        ap.claims.requester.request_matched(match)
        assert 0 == ap.claims.requester.asked.jobs.total()

        await ap.recorder.record([("claim/one", ClaimEnded(claim="one", reason="over"))])

        assert {free, limited} == requested()
        ap.claims.requester.request_matched(match)
        assert 1 == ap.claims.requester.asked.jobs.total()


async def test_the_largest_sum_of_limits_can_be_read(tmp_path: Path) -> None:
    """
    As many names as may be, each as long as may be, are much less than a message; the negotiator reads them.
    """
    async with schedd(tmp_path) as ap:
        await record(ap, "many", {f"{n:0128}": 1e15 for n in range(MOST_NAMES + 63)})
        shown, _ = await adverts(ap)
        encoded = msgspec.msgpack.encode(shown.submitter_ad("eve"))

        assert len(encoded) < 1 << 18
        assert 1e15 == min(msgspec.msgpack.decode(encoded, type=SubmitterAd).limits.values())


async def test_what_is_shown_of_a_job_is_made_again_when_the_job_is_another(tmp_path: Path) -> None:
    """Not each time that an ad is made: of very many submitters few have jobs that begin or end."""
    async with schedd(tmp_path) as ap:
        shown, _ = await adverts(ap)

        def pictures() -> list[Ad]:
            ad = shown.submitter_ad("eve")
            assert ad is not None
            return [request.ad for request in ad.requests]

        first = pictures()
        assert first
        assert all(one is again for one, again in zip(first, pictures(), strict=True))

        stream = f"job/{first[0]['ClusterId']}.{first[0]['ProcId']}"
        await ap.recorder.record([(stream, JobEdited(attributes={"JobPrio": 7}))])

        assert 7 == pictures()[0]["JobPrio"]
        ap.recorder.queue.significant = ("Owner", "Iwd")
        assert all(one is not again for one, again in zip(first, pictures(), strict=True))


async def test_each_of_many_autoclusters_is_shown_in_turn_beside_another_submitter(tmp_path: Path) -> None:
    """
    Two submitters of 300 autoclusters each: after four publications everything of both was in an ad, the most urgent in all.
    """
    async with schedd(tmp_path) as ap:
        rows: list[list[Scalar]] = [[1024 + number] for number in range(300)]
        for cluster, owner in ((2, "ada"), (3, "bob")):
            event = ClusterSubmitted(
                cluster=cluster, owner=owner, ad={"Cmd": "x"}, columns=["RequestMemory"], rows=rows
            )
            await ap.recorder.record([(f"cluster/{cluster}", event)])
        shown, _ = await adverts(ap)

        ads = [shown.submitter_ad(owner) for _ in range(4) for owner in ("ada", "bob")]

        procs = [[request.ad["ProcId"] for request in ad.requests] for ad in ads if ad is not None]
        assert all(set(range(100)) <= set(one) for one in procs)
        assert [300, 300] == [len({proc for one in procs[which::2] for proc in one}) for which in (0, 1)]
