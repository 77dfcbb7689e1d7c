"""A site behind a leaf of the pool's NATS server, which is cut off from it for a while and comes back."""

import asyncio
import os
from pathlib import Path

import msgspec
import pytest

from kettle.client import select
from kettle.pool.personal_settings import Tables, Value
from kettle.testing.servers import selection
from kettle.testing.servers.embedded import server_directory
from kettle.testing.throwaway_pool import throwaway_pool

from .evidence import Evidence
from .leaf_site import LeafSite

LONG = "KETTLE_TEST_LONG"
CUT_S = float(os.environ.get("KETTLE_TEST_CUT_S", "600"))
CPUS = 4
WITHIN_S = 1200.0
AT_THE_HUB = ["collector", "negotiator"]
AT_THE_SITE = ["schedd", "shadow", "startd", "accounting"]


def of_one_pool(url: str, credentials: Path, daemons: list[str]) -> Tables:
    """Settings of a host that is reached by one of both servers."""
    bus: dict[str, Value] = {"nats_url": url, "nats_credentials": str(credentials), "pool": "personal"}
    return {"kettle": bus, "master": {"daemon_list": daemons}}


@pytest.mark.skipif(
    LONG not in os.environ, reason=f"it takes minutes: a site is cut off for {CUT_S:g} s ({LONG}=1 cuts it)"
)
@pytest.mark.skipif(not selection.servers_are_ours(), reason="has servers of its own")
async def test_a_site_goes_on_while_it_is_cut_off(tmp_path: Path, template: Path, evidence: Evidence) -> None:
    """
    What runs there runs on, and people submit; what is to begin waits for the line, since who begins it learns of it from JetStream.
    When the line is back all jobs end, each ran once, and the logs are clean.
    """
    with server_directory() as place:
        async with LeafSite(place / "nats") as line:
            hub = of_one_pool(line.hub_url, line.credentials, AT_THE_HUB)
            own = of_one_pool(line.leaf_url, line.credentials, AT_THE_SITE)
            async with (
                throwaway_pool(tmp_path, settings=hub, template=template) as pool,
                throwaway_pool(tmp_path, cpus=CPUS, settings=own, template=template) as site,
            ):
                seconds = [CUT_S / 4] * (CPUS * 2)
                loop = asyncio.get_running_loop()
                first = (await site.client.submit(evidence.sweep(seconds), cwd=evidence.work)).cluster
                for number in range(CPUS):
                    await evidence.begun(number)
                await line.cut()
                began = loop.time()
                again = await site.client.submit(
                    "executable = /bin/true\nrequest_memory = 16\nqueue 10\n", cwd=evidence.work
                )
                submit_s = loop.time() - began
                await asyncio.sleep(max(0.0, CUT_S - submit_s))
                meanwhile = len(list(evidence.work.glob("result.*")))
                await line.mend()
                mended = loop.time()
                cut_s = mended - began
                await site.client.wait(select(again.cluster))
                heard_s = loop.time() - mended
                await site.client.wait(select(first))
                async with asyncio.timeout(WITHIN_S):
                    while len(await site.client.history(limit=0)) < len(seconds) + 10:
                        await asyncio.sleep(0.1)
                assert {} == evidence.overlaps()
                assert [] == evidence.wrong_results(len(seconds))
                twice = [number for number, count in evidence.runs().items() if count > 1]
                for each in (pool, site):
                    audit = await each.log_check(within_s=WITHIN_S)
                    assert audit.clean, audit.said
                figures = {
                    "cut_s": cut_s, "submit_s": submit_s, "results in the cut": meanwhile, "heard_s": heard_s,
                    "ran twice": len(twice),
                }  # fmt: skip
                (tmp_path / "figures.json").write_bytes(msgspec.json.encode(figures))
                assert [] == twice
