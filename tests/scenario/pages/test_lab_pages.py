"""
A facility with nothing but a mouse and a keyboard: from the hub to a notebook in JupyterLab, to a Dask cluster of jobs, and to its dashboard,
whose plots are live through the gateway.
"""

import asyncio
import re
from collections.abc import AsyncIterator, Iterable
from pathlib import Path
from typing import Any, Final

import aiohttp
import msgspec
import pytest
import pytest_asyncio
from playwright.async_api import Browser, Page
from tests.integration.iam.issuer import TokenIssuer
from tests.scenario.hub_programs import HubPrograms

from kettle.client import select
from kettle.testing.patience import PATIENCE_S
from kettle.testing.servers import selection
from kettle.testing.throwaway_pool import ThrowawayPool, merged

from .browser import DESKTOP
from .hubs import PERSON, POOL, SERVICES, IssuerHere, running_hub

pytestmark = [
    pytest.mark.scenario,
    pytest.mark.embedded,
    pytest.mark.asyncio(loop_scope="session"),
    pytest.mark.skipif(
        not selection.servers_are_ours(),
        reason="who may connect to servers of somebody else is theirs to say",
    ),
]

HERE: Final = IssuerHere()
LAB: Final = "the laboratory"
PROFILES: Final = """\
[drawn]
kind = "dask"
python = {python}
memory = 300
cpus_allowed = [1, 4]
memory_allowed = [64, 4000]
"""
CELLS: Final = {
    "cluster": """\
from kettle.dask import KettleCluster
cluster = KettleCluster(2, name="clicks", quiet=True)
client = cluster.get_client()
client.wait_for_workers(2)
cluster""",
    "sum": "print(client.submit(sum, client.map(lambda n: n * n, range(50))).result())",
    "larger": "cluster.scale(3)\nclient.wait_for_workers(3)\nprint(len(client.scheduler_info(-1)['workers']), 'workers')",
    "end": "client.close()\ncluster.close()\nprint('it is closed')",
}
SLOW_MS: Final = 1000 * PATIENCE_S


@pytest.fixture(scope="module")
def profiles(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("profiles") / "profiles.toml"
    made.write_text(PROFILES.format(python='"none"'))
    return made


@pytest.fixture(scope="module")
def configuration(tmp_path_factory: pytest.TempPathFactory, profiles: Path) -> dict[str, Any]:
    login = [{"issuer": HERE.url, "client": "web", "resource": POOL, "name": LAB}]
    own: dict[str, dict[str, Any]] = {
        "gateway": {"login": login, "request_burst": 1e6, "requests_per_second": 1e6},
        "sessions": {"profiles": str(profiles), "profiles_interval": 0.2},
    }
    services = (*SERVICES, "sessions")
    return {"cpus": 6, "settings": merged(HERE.settings(tmp_path_factory.mktemp("rules"), services), own)}


@pytest_asyncio.fixture(loop_scope="session")
async def issuer() -> AsyncIterator[TokenIssuer]:
    async with HERE.serving(life_s=600) as made:
        yield made


@pytest_asyncio.fixture(loop_scope="session")
async def drawn(hub_programs: HubPrograms, pool: ThrowawayPool, profiles: Path) -> None:
    """The profile runs the Python of the hub, which has what the dashboard is drawn with."""
    new = profiles.with_suffix(".new")
    new.write_text(PROFILES.format(python=msgspec.json.encode(hub_programs.python).decode()))
    new.replace(profiles)
    async with asyncio.timeout(PATIENCE_S):
        while "drawn" not in {each.name for each in (await pool.client.sessions.profiles()).profiles}:
            await asyncio.sleep(0.05)


async def test_the_hub_is_there(hub_programs: HubPrograms) -> None:
    """What takes minutes to install has a test, and time, of its own."""
    assert Path(hub_programs.proxy).exists()


async def run_cell(lab: Page, text: str, sign: str) -> None:
    """Type a cell below the others and run it; what it shows has to have the `sign` in it."""
    cell = lab.locator(".jp-Notebook .jp-CodeCell").last
    await cell.locator(".cm-content").click()
    await lab.keyboard.insert_text(text)
    shown = lab.locator(".jp-OutputArea-output", has_text=sign)
    await lab.keyboard.press("Shift+Enter")
    await shown.last.wait_for(timeout=SLOW_MS)


async def drawn_in(dashboard: Page, jobs: Iterable[str]) -> None:
    """
    Bokeh has drawn its table, when its WebSocket has said what is in it: a line for each worker, whose name is its job.
    """
    for job in jobs:
        line = dashboard.locator(".slick-cell", has_text=re.compile(rf"^{re.escape(job)}$")).first
        await line.wait_for(timeout=2 * SLOW_MS)


async def workers_of(pool: ThrowawayPool) -> set[str]:
    """The jobs of somebody that are workers of a cluster and run."""
    is_worker = f'Owner == "{PERSON}" && JobStatus == 2 && regexp("kettle[.]dask[.]worker", Arguments)'
    ads = await pool.client.jobs(select(constraint=is_worker), projection=["ClusterId", "ProcId"])
    return {f"{ad['ClusterId']}.{ad['ProcId']}" for ad in ads}


async def test_from_the_hub_to_a_notebook_and_the_dashboard_of_its_cluster(
    seeing: Browser,
    pool: ThrowawayPool,
    issuer: TokenIssuer,
    hub_programs: HubPrograms,
    drawn: None,
    tmp_path: Path,
) -> None:
    """
    Somebody signs in, starts a server and a notebook, whose cells make a cluster and compute with it; the link below the cell leads to the
    dashboard behind the gateway, after another click at the same issuer; and what the notebook does next is seen there at once.
    """
    iam = (pool.home / "iam" / "port").read_text()
    environment = {"KETTLE_POOL_URL": f"http://127.0.0.1:{iam}", "KETTLE_HOME": str(tmp_path / "person")}
    async with running_hub(hub_programs, pool, issuer, tmp_path, page="/lab", environment=environment) as url:
        context = await seeing.new_context(viewport={"width": DESKTOP[0], "height": DESKTOP[1]})
        context.set_default_timeout(SLOW_MS)
        lab = await context.new_page()
        await lab.goto(f"{url}/hub/spawn")
        await lab.get_by_role("button", name=f"Sign in with {LAB}").click()
        await lab.get_by_label("Analysis").check()
        await lab.get_by_role("button", name="Start").click()
        await lab.locator(".jp-LauncherCard[data-category=Notebook]").first.click()
        await lab.locator(".jp-Notebook .jp-CodeCell").first.wait_for()
        await lab.get_by_text("| Idle").wait_for()  # what is run before the kernel is there is not run
        await run_cell(lab, CELLS["cluster"], "2 of 2")
        await run_cell(lab, CELLS["sum"], str(sum(n * n for n in range(50))))

        async with context.expect_page() as opening:
            await lab.locator(".jp-OutputArea-output a[href*='/dashboard/']").first.click()
        dashboard = await opening.value
        await dashboard.get_by_role("link", name=LAB).or_(dashboard.get_by_role("button", name=LAB)).click()
        await dashboard.locator("a:text-is('Workers')").first.click()
        first = await workers_of(pool)
        await drawn_in(dashboard, first)
        await run_cell(lab, CELLS["larger"], "3 workers")
        (third,) = await workers_of(pool) - first
        await drawn_in(dashboard, [third])
        assert 3 == len(first | {third})

        await run_cell(lab, CELLS["end"], "it is closed")
        await lab.goto(f"{url}/hub/home")
        await lab.locator("#stop").click()
        async with asyncio.timeout(PATIENCE_S):
            while (await pool.client.queue()).jobs:
                await asyncio.sleep(0.1)
        await context.close()


async def test_a_dashboard_is_a_click_away_from_the_page_of_its_session(
    seeing: Browser, pool: ThrowawayPool, issuer: TokenIssuer, drawn: None
) -> None:
    """
    From the login to the list of one's sessions, to one of them, which is scaled there, to the dashboard of its scheduler, which draws its
    workers, and back to its end.
    """
    address = f"http://127.0.0.1:{(pool.home / 'gateway' / 'port').read_text()}"
    token = {"Authorization": f"Bearer {issuer.token(PERSON, POOL)}"}
    new = {"kind": "dask", "profile": "drawn", "name": "fits", "size": {"workers": 1, "memory": 300}}
    async with (
        aiohttp.ClientSession(address, headers=token) as asking,
        asking.post("/v2/sessions", json=new) as answer,
    ):
        assert 201 == answer.status, await answer.text()
    context = await seeing.new_context(viewport={"width": DESKTOP[0], "height": DESKTOP[1]})
    context.set_default_timeout(SLOW_MS)
    page = await context.new_page()
    await page.goto(f"{address}/sessions")
    await page.get_by_role("link", name=LAB).or_(page.get_by_role("button", name=LAB)).click()
    await page.click("th a:text-is('fits')")
    await page.wait_for_selector("[data-live-state=on]")
    # The first scheduler of a machine reads all that Dask and its dashboard are made of.
    await page.wait_for_selector(".title .session-ready", timeout=3 * SLOW_MS)
    own = page.url
    await page.click("text=Scale, restart or stop it")
    await page.fill("[name=workers]", "2")
    await page.click("button[value=scale]")
    await page.wait_for_selector("dd:has-text('2 of 2')")
    await page.click(".services a:text-is('dashboard')")
    await page.locator("a:text-is('Workers')").first.click()
    await drawn_in(page, await workers_of(pool))
    await page.goto(own)
    await page.click("text=Scale, restart or stop it")
    await page.click("button[value=stop]")
    await page.wait_for_selector(".title .session-ended")
    await context.close()
    async with asyncio.timeout(PATIENCE_S):
        while (await pool.client.queue()).jobs:
            await asyncio.sleep(0.1)
