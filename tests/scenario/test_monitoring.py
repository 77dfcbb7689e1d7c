"""A running pool as Prometheus sees it: every service says what is declared of it."""

import asyncio
import json
import os
import re
import runpy
import shutil
import signal
from collections.abc import AsyncIterator, Iterator, Sequence
from pathlib import Path
from typing import Final

import aiohttp
import pytest
import pytest_asyncio

from kettle.client import select
from kettle.pool.personal_settings import Tables
from kettle.retry.deadline import Deadline
from kettle.testing.patience import PATIENCE_S
from kettle.testing.shared_pool import SharedPool
from kettle.testing.throwaway_pool import ThrowawayPool
from kettle_wire.telemetry.metrics import of_service
from kettle_wire.telemetry.process_metrics import ALL

from .prometheus import prometheus

pytestmark = [pytest.mark.scenario, pytest.mark.embedded]

INFRA: Final = Path(__file__).parents[2] / "infra"
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


def series(said: str, name: str) -> list[str]:
    """The labels of each series of a metric."""
    return re.findall(rf"^{name}(?:_count)?(?:{{(.*)}})? \S+$", said, re.MULTILINE)


async def complete(address: str, names: Sequence[str]) -> str:
    """What a service says when all of these have series: what follows the queue's record may be behind it."""
    deadline = Deadline(PATIENCE_S)
    while True:
        said = await scraped(address)
        missing = [name for name in names if not series(said, name)]
        if not missing:
            return said
        assert not deadline.passed, f"{address}: there is no series of {missing}"
        await asyncio.sleep(0.1)


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
        declared = {metric.prometheus: metric for metric in of_service(role)}
        said = await complete(address, [name for name, metric in declared.items() if not metric.when])
        kinds = dict(re.findall(r"^# TYPE (\S+) (\S+)$", said, re.MULTILINE))
        assert "gauge" == kinds.pop("target_info")
        assert kinds == {name: metric.kind for name, metric in declared.items()}, role
        for name, metric in declared.items():
            labels = [attribute.label for attribute in metric.attributes]
            for one in series(said, name):
                assert labels == re.findall(r'(\w+)="', one), f"{role}: {name}"


@pytest.fixture
def configured(pool: ThrowawayPool, tmp_path: Path) -> Path:
    """The configuration of infra/prometheus for this pool, which asks more often."""
    text = (INFRA / "prometheus/prometheus.yml").read_text()
    text = text.replace("/var/lib/kettle/pool/metrics", str(pool.home / "metrics")).replace("15s", "500ms")
    text = re.sub(r"\nalerting:\n(?:  .*\n)+", "\n", text)
    shutil.copytree(INFRA / "prometheus/rules", tmp_path / "rules")
    path = tmp_path / "prometheus.yml"
    path.write_text(text)
    return path


async def test_every_panel_shows_what_a_pool_does(
    pool: ThrowawayPool, configured: Path, tmp_path: Path
) -> None:
    """
    A real Prometheus finds all services, and after some jobs every query of every dashboard has data, unless the panel says why
    it may have none; no rule fails.
    """
    async with prometheus(configured, tmp_path / "data") as server:
        await server.until(f'count(up{{job="kettle"}} == 1) == {len(ALL)}')
        cluster = (await pool.client.submit("executable = /bin/true\nqueue 3\n")).cluster
        await pool.client.wait(select(cluster))
        await server.until("kettle_schedd_job_wait_seconds_count >= 3")
        panels = runpy.run_path(str(INFRA / "grafana/make_dashboards.py"))["DASHBOARDS"]
        for dashboard in panels:
            for panel in dashboard.panels:
                for query in panel.queries.values():
                    asked = query.replace("POOL", 'pool=~".*"').replace("RATE", "1m")
                    found = await (server.query(asked) if panel.empty else server.until(asked))
                    assert found or panel.empty, f"{dashboard.name}: {panel.title}"
        groups = (await server.api("rules"))["groups"]
        rules = [rule for group in groups for rule in group["rules"]]
        assert len(rules) > 40
        assert [] == [rule["name"] for rule in rules if rule["health"] == "err"]
        found = (await server.api("targets"))["activeTargets"]
        assert sorted(ALL) == sorted(target["labels"]["service"] for target in found)


async def test_a_service_that_is_killed_is_missed(
    pool: ThrowawayPool, configured: Path, tmp_path: Path
) -> None:
    """Prometheus sees that it is down, and finds the process that takes its place by itself."""
    async with prometheus(configured, tmp_path / "data") as server:
        up = 'up{service="negotiator"}'
        await server.until(f"{up} == 1")
        os.kill(pid := pool.pid("negotiator"), signal.SIGSTOP)
        await server.until(f"{up} == 0")
        os.kill(pid, signal.SIGKILL)
        await pool.restarted("negotiator", after=pid)
        await server.until(f"{up} == 1")
        assert 1 == len(await server.query(up))
