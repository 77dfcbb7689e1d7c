"""Bans that an iam keeps, at a gateway that believes people whom this iam does not know."""

import asyncio
from pathlib import Path

import aiohttp
import pytest
from tests.integration.iam.gate import AUDIENCE, gate_on

from kettle.runtime.people import People
from kettle.testing.patience import PATIENCE_S
from kettle.testing.services import Backend
from kettle_services.gateway.rest.refusals import RequestRefused
from kettle_services.gateway.settings import LoginIssuer

from .browsing import Gateway, gateway_at, sent

RULES = """
[[rules]]
when.issuer = "{issuer}"
when.subject = '/^([a-z]+)$/'
owner = '\\1'
"""


async def until(gateway: Gateway, browser: aiohttp.ClientSession, token: str, expected: int) -> str:
    """Why a token is refused when it is."""
    headers = {"Authorization": f"Bearer {token}"}
    async with asyncio.timeout(PATIENCE_S):
        while True:
            status, response = await sent(browser, "GET", "/v2/jobs", headers=headers)
            if status == expected:
                return str((await response.json()).get("code", ""))
            await asyncio.sleep(0.01)


async def test_who_is_banned_loses_session_and_token(backend: Backend, tmp_path: Path) -> None:
    """
    Also by a token of which iam is not asked, and by the key of an account; nobody else does, and it ends with the ban.
    """
    directory = tmp_path / "gateway"
    (directory / "credentials").mkdir(parents=True)
    (directory / "credentials" / "account-ada.creds").touch()
    people = People()
    async with gate_on(backend, tmp_path, RULES) as gate, gate.member("gateway") as bus:
        following = asyncio.create_task(people.follow(bus, gate.subjects))
        async with asyncio.timeout(PATIENCE_S):
            await people.heard.wait()
        login = LoginIssuer(issuer=gate.issuer.url, client="kettle-web")
        rules = RULES.replace("{issuer}", gate.issuer.url)
        try:
            async with (
                gateway_at(directory, [login], audiences=[AUDIENCE], rules=rules, people=people) as gateway,
                gateway.browser() as ada,
                gateway.browser() as program,
                gate.administrator() as iam,
            ):
                of_ada, of_bob = gate.token("ada"), gate.token("bob")
                form = {"token": of_ada}
                assert 303 == (await sent(ada, "POST", "/login", data=form, headers=gateway.own_pages))[0]
                assert 200 == (await sent(ada, "GET", "/v2/jobs"))[0]
                assert "ada" == gateway.persons.of_account("ada", "").name
                await iam.ban("user:ada", reason="mines coins")
                assert "user.banned" == await until(gateway, program, of_ada, 403)
                assert 403 == (await sent(ada, "GET", "/v2/jobs"))[0]
                assert 0 == len(gateway.table)
                with pytest.raises(RequestRefused, match="ada@pool is banned"):
                    gateway.persons.of_account("ada", "")
                await until(gateway, program, of_bob, 200)
                await iam.unban("user:ada")
                await until(gateway, program, of_ada, 200)
        finally:
            following.cancel()
