"""`kettle web` in a running pool, and what a browser can do that it has signed in."""

import json
import re
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path

import aiohttp
import pytest

from kettle.auth.trust.files import write
from kettle.auth.trust.pool import Kind, PoolTrust
from kettle.testing.commands.running import KETTLE, run
from kettle.testing.servers import selection
from kettle.testing.throwaway_pool import ThrowawayPool
from kettle_wire.subjects import Subjects

pytestmark = [pytest.mark.scenario, pytest.mark.embedded]

OPENED = {"Sec-Fetch-Site": "none", "Sec-Fetch-Mode": "navigate"}
"""What a browser says of an address that a person has opened."""


async def link(pool: ThrowawayPool) -> str:
    """The address that `kettle web` prints."""
    status, out, err = await pool.kettle("web", "--json")
    assert 0 == status, err
    return str(json.loads(out)["url"])


@asynccontextmanager
async def switched_on(pool: ThrowawayPool) -> AsyncGenerator[None]:
    """Whatever the test switches on is off again behind it."""
    settings = pool.home / "kettle.toml"
    was = settings.read_text()
    try:
        yield
    finally:
        settings.write_text(was)
        before = pool.pid("gateway")
        controlled = await pool.client.hosts.control("reconfig", daemons=["gateway"])
        for switched in controlled.switched:
            assert "begun" == switched.outcome, switched
            await pool.restarted(switched.daemon, after=before)


async def test_it_switches_on_what_is_missing_and_signs_in(pool: ThrowawayPool, tmp_path: Path) -> None:
    """
    In a pool without pages the command has them served and says so; its address works once, for the account that asked, and
    neither it nor the cookie is in any log.
    """
    async with switched_on(pool):
        address = await link(pool)
        assert "rest = true" in (pool.home / "kettle.toml").read_text()
        again = await link(pool)
        jar = aiohttp.CookieJar(unsafe=True)
        async with aiohttp.ClientSession(cookie_jar=jar) as browser:
            async with browser.get(f"{address}&next=/v2/browser-sessions", headers=OPENED) as response:
                assert 200 == response.status
                (session,) = (await response.json())["sessions"]
                assert ("link", True) == (session["way"], session["current"])
                assert "link=" not in str(response.url)
            async with browser.get(address, headers=OPENED) as response:
                assert 403 == response.status
        secrets = [
            *(cookie.value for cookie in jar),
            *(each.partition("link=")[2] for each in (address, again)),
        ]
        log = pool.log("gateway")
        assert "has signed in by link" in log
        assert [] == [each for each in secrets if each in log]


async def test_the_browsers_command_line_tells_nothing(pool: ThrowawayPool, tmp_path: Path) -> None:
    """
    The browser gets a page that only its account can read, which is gone after that.  It leads to the login page, where the button
    signs in what has come from a file, which any site could seem to be.
    """
    browser = tmp_path / "browser"
    browser.write_text(
        f'#!/bin/sh\necho "$1" > {tmp_path}/said\nfile="${{1#file://}}"\nstat -c %a "$file" > {tmp_path}/mode\n'
        f'cat "$file" > {tmp_path}/page\n'
    )
    browser.chmod(0o700)
    async with switched_on(pool):
        environ = {**pool.environ, "KETTLE_HOME": str(pool.home), "BROWSER": f"{browser} %s"}
        status, _, err = await run([*KETTLE, "web"], tmp_path, environ)
        assert 0 == status, err
        said = (tmp_path / "said").read_text().strip()
        assert ("file:///", False, "600\n") == (said[:8], "link=" in said, (tmp_path / "mode").read_text())
        assert not Path(said.removeprefix("file://")).exists()
        found = re.search(r'href="([^"]+)"', (tmp_path / "page").read_text())
        assert found is not None
        address = found[1]
        place = address.partition("/login")[0]
        async with aiohttp.ClientSession(cookie_jar=aiohttp.CookieJar(unsafe=True)) as session:
            headers = {"Sec-Fetch-Site": "cross-site", "Accept": "text/html"}
            async with session.get(address, headers=headers) as response:
                hidden = dict(re.findall(r'name="(link|next)" value="([^"]+)"', await response.text()))
            own = {"Sec-Fetch-Site": "same-origin", "Origin": place}
            async with session.post(f"{place}/login", data=hidden, headers=own) as response:
                assert 200 == response.status
            async with session.get(f"{place}/v2/browser-sessions") as response:
                assert 200 == response.status


async def test_another_account_signs_in_as_itself(pool: ThrowawayPool, tmp_path: Path) -> None:
    """
    An account that the pool serves gets a session of its own, which ends with its right to use the pool; who has a key that is
    none of an account gets none.
    """
    if not selection.servers_are_ours():
        pytest.skip("who may connect to servers of somebody else is theirs to say")
    trust = PoolTrust(pool.home / "credentials" / "trust", Subjects(pool.client.pool.pool))
    key = write(pool.home / "credentials" / "account-ada.creds", partial(trust.member, Kind.PERSON, "ada"))
    theirs = tmp_path / "ada"
    theirs.mkdir()
    async with switched_on(pool):
        await link(pool)
        ada = json.loads((pool.home / "pool.json").read_text())
        (theirs / "pool.json").write_text(
            json.dumps({**ada, "user": "ada", "credentials": str(key), "lock": ""})
        )
        status, out, err = await pool.kettle("web", "--json", "--home", str(theirs))
        assert 0 == status, err
        async with aiohttp.ClientSession(cookie_jar=aiohttp.CookieJar(unsafe=True)) as browser:
            address = json.loads(out)["url"]
            async with browser.get(f"{address}&next=/v2/jobs", headers=OPENED) as response:
                assert 200 == response.status
            kept = tmp_path / "kept.creds"
            key.rename(kept)
            async with browser.get(f"{address.partition('/login')[0]}/v2/jobs") as response:
                assert (403, "user.unmapped") == (response.status, (await response.json())["code"])
        (theirs / "pool.json").write_text(
            json.dumps({**ada, "user": "ada", "credentials": str(kept), "lock": ""})
        )
        status, _, err = await pool.kettle("web", "--json", "--home", str(theirs))
        assert (1, True) == (status, "no account of this machine" in err)
