"""A running pool as Prometheus sees it: every service says what is declared of it."""

import json
import re
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Final

import aiohttp
import pytest
import pytest_asyncio

from kettle.client import select
from kettle.pool.personal_settings import Tables
from kettle.testing.shared_pool import SharedPool
from kettle.testing.throwaway_pool import ThrowawayPool
from kettle_wire.telemetry.metrics import ALL, of_service

pytestmark = [pytest.mark.scenario, pytest.mark.embedded]

SETTINGS: Final[Tables] = {
    "telemetry": {"metrics": True, "owners": True},
    "master": {"daemon_list": [role for role in ALL if role != "master"]},
    "gateway": {"rest": True},
}


@pytest.fixture(scope="module")
def monitored(tmp_path_factory: pytest.TempPathFactory, template: Path) -> Iterator[SharedPool]:
    """A pool of its own: the master, too, is asked, and its settings are for its life."""
    with SharedPool(tmp_path_factory.mktemp("monitored"), template=template) as shared:
        yield shared


@pytest_asyncio.fixture
async def pool(monitored: SharedPool) -> AsyncIterator[ThrowawayPool]:
    async with monitored.lent(settings=SETTINGS) as lent:
        yield lent


def targets(pool: ThrowawayPool) -> dict[str, str]:
    """Address of each service."""
    found = [json.loads(path.read_text())[0] for path in (pool.home / "metrics").glob("*.json")]
    return {each["labels"]["service"]: each["targets"][0] for each in found}


async def scraped(address: str) -> str:
    async with aiohttp.ClientSession() as session, session.get(f"http://{address}/metrics") as answer:
        assert 200 == answer.status
        return await answer.text()


async def test_each_service_says_what_is_declared_of_it(pool: ThrowawayPool) -> None:
    """
    After jobs that completed, failed, were held and removed: every metric of a role is there, none that is not declared, with the
    declared kind and labels, and with series unless something else has to happen before.
    """
    done = (await pool.client.submit("executable = /bin/true\nqueue 2\n")).cluster
    failed = (await pool.client.submit("executable = /bin/false\nqueue\n")).cluster
    held = (await pool.client.submit("executable = /bin/true\nhold = true\nqueue\n")).cluster
    await pool.client.wait(select(done, failed))
    await pool.client.remove(select(held), "not wanted")
    found = targets(pool)
    assert set(ALL) == set(found)
    for role, address in found.items():
        said = await scraped(address)
        declared = {metric.prometheus: metric for metric in of_service(role)}
        kinds = dict(re.findall(r"^# TYPE (\S+) (\S+)$", said, re.MULTILINE))
        assert "gauge" == kinds.pop("target_info")
        assert kinds == {name: metric.kind for name, metric in declared.items()}, role
        for name, metric in declared.items():
            labels = [attribute.label for attribute in metric.attributes]
            series = re.findall(rf"^{name}(?:_count)?(?:{{(.*)}})? \S+$", said, re.MULTILINE)
            assert series or metric.when, f"{role}: {name} has no series"
            for one in series:
                assert labels == re.findall(r'(\w+)="', one), f"{role}: {name}"
