"""
From the login to a running server in a real browser: JupyterHub signs people in at an issuer, and their servers are jobs of theirs, with
the token of the login in them.
"""

import asyncio
import os
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any, Final

import pytest
import pytest_asyncio
from playwright.async_api import Browser
from tests.integration.iam.issuer import TokenIssuer
from tests.scenario.hub_programs import HubPrograms

from kettle.client import select
from kettle.testing.patience import PATIENCE_S
from kettle.testing.servers import selection
from kettle.testing.throwaway_pool import ThrowawayPool
from kettle_wire.jobs import JobId

from .browser import DESKTOP
from .hubs import IssuerHere, running_hub

pytestmark = [
    pytest.mark.scenario,
    pytest.mark.embedded,
    pytest.mark.asyncio(loop_scope="session"),
    pytest.mark.skipif(
        not selection.servers_are_ours(),
        reason="who may connect to servers of somebody else is theirs to say",
    ),
]

LIFE_S: Final = 20
LIVES: Final = 3
HERE: Final = IssuerHere()
WATCHES: Final = """
import base64, json, os, sys, time
with open(sys.argv[1], "w", 1) as seen:
    while True:
        with open(os.environ["BEARER_TOKEN_FILE"]) as file:
            claims = file.read().split(".")[1]
        claims = json.loads(base64.urlsafe_b64decode(claims + "=" * (-len(claims) % 4)))
        seen.write(f"{claims['sub']} {claims['jti']} {claims['exp'] - time.time():.3f}\\n")
        time.sleep(0.1)
"""


@pytest.fixture(scope="module")
def configuration(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    return {"settings": HERE.settings(tmp_path_factory.mktemp("rules"))}


@pytest_asyncio.fixture(loop_scope="session")
async def issuer() -> AsyncIterator[TokenIssuer]:
    async with HERE.serving(life_s=LIFE_S) as made:
        yield made


def files(place: Path) -> Iterator[tuple[str, bytes]]:
    """
    All that the pool has written, without the sandbox and the input files of jobs, which are for their owners alone.
    """
    for path in place.rglob("*"):
        name = str(path.relative_to(place))
        if name.startswith(("execute/", "state/spool")) or path.is_symlink() or not path.is_file():
            continue
        yield name, path.read_bytes()


def environment_of_server() -> dict[str, str]:
    """What the server that runs on this machine has in its environment."""
    for each in Path("/proc").glob("[0-9]*"):
        try:
            if b"jupyterhub-singleuser" in (each / "cmdline").read_bytes():
                found = (each / "environ").read_bytes().split(b"\0")
                variables = dict(word.decode().split("=", 1) for word in found if b"=" in word)
                if variables.get("JUPYTERHUB_USER") == "grace":
                    return variables
        except OSError:
            continue
    raise AssertionError("no server runs")


async def test_the_hub_is_there(hub_programs: HubPrograms) -> None:
    """What takes minutes to install has a test, and time, of its own."""
    assert Path(hub_programs.proxy).exists()


async def test_from_the_login_to_a_server_with_the_token_of_the_login(
    seeing: Browser, pool: ThrowawayPool, issuer: TokenIssuer, hub_programs: HubPrograms, tmp_path: Path
) -> None:
    """
    Somebody signs in, chooses a profile and gets a server, which is her job.  What her login gives is in it, good at every moment of three
    lives of a token; nothing of it, and no token of the hub, is in the ad, the events, or any file of the pool that is not hers.
    """
    signed: list[str] = []
    sign = issuer.signed

    def remembered(claims: Any) -> str:
        signed.append(sign(claims))
        return signed[-1]

    issuer.signed = remembered  # type: ignore[method-assign]
    (tmp_path / "watches.py").write_text(WATCHES)
    watching = f'{hub_programs.python} {tmp_path}/watches.py {tmp_path}/seen & exec "$@"'
    single = str(Path(hub_programs.python).parent / "jupyterhub-singleuser")
    command = ["/bin/sh", "-c", watching, "sh", single]
    async with running_hub(hub_programs, pool, issuer, tmp_path, page="/tree", command=command) as url:
        context = await seeing.new_context(viewport={"width": DESKTOP[0], "height": DESKTOP[1]})
        context.set_default_timeout(120_000)
        page = await context.new_page()
        await page.goto(f"{url}/hub/spawn")
        await page.get_by_role("button", name="Sign in with the laboratory").click()
        await page.get_by_label("Notebook").wait_for()
        assert await page.get_by_label("Notebook").is_checked()
        await page.get_by_label("Large").check()
        if directory := os.environ.get("KETTLE_TEST_PICTURES"):
            await page.screenshot(path=Path(directory) / "hub-profiles.png")
        await page.get_by_role("button", name="Start").click()
        await page.wait_for_url(f"{url}/user/grace/tree*")
        await page.locator(".jp-DirListing").first.wait_for()
        (ad,) = (await pool.client.queue()).jobs
        assert ("grace", 300, 2) == (ad["Owner"], ad["RequestMemory"], ad["JobStatus"])
        environ = environment_of_server()
        begun = asyncio.get_running_loop().time()
        seen = tmp_path / "seen"
        async with asyncio.timeout(LIFE_S * LIVES + PATIENCE_S):
            while asyncio.get_running_loop().time() - begun < LIFE_S * LIVES + 2:
                await asyncio.sleep(1)
        lines = [line.split() for line in seen.read_text().splitlines()]
        assert {"grace"} == {owner for owner, _, _ in lines}
        assert min(float(left) for _, _, left in lines) > 0
        assert len({token for _, token, _ in lines}) > LIVES
        assert len(lines) > LIFE_S * LIVES * 5
        job = JobId(int(str(ad["ClusterId"])), 0)
        told = str(ad) + str(await pool.client.events(job))
        texts = dict(files(pool.home))
        made = [token.rpartition(".")[2] for token in signed] + [environ["JUPYTERHUB_API_TOKEN"]]
        assert len(made) > LIVES
        for secret in made:
            assert secret not in told
            assert [] == [name for name, data in texts.items() if secret.encode() in data]
        await page.goto(f"{url}/hub/home")
        await page.locator("#stop").click()
        async with asyncio.timeout(PATIENCE_S):
            while (await pool.client.queue(select(job))).jobs:
                await asyncio.sleep(0.1)
        await context.close()
