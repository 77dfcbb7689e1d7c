"""What somebody else has written, in the browser of who looks at it; and what every answer says to that browser."""

import asyncio
import json
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote

import aiohttp
import pytest

from kettle.client import select
from kettle.testing.throwaway_pool import ThrowawayPool
from kettle_services.gateway.pages.page import Page
from kettle_services.gateway.pages.wiring import PAGES
from kettle_wire.rest.catalogue import ROUTES

from .browser import Looks, Watched

pytestmark = [pytest.mark.scenario, pytest.mark.embedded]

EVIL: Final = '<x-evil onclick=alert(1)>\'"--></script></title><script>window.evil=1</script><img src=x onerror=window.evil=1>{{7*7}}'
"""Text that is an element, a script and a template wherever it is not escaped."""
LINK: Final = "javascript:window.evil=1"
QUOTED: Final = EVIL.replace('"', '""')
"""As a string of a submit description."""
DESCRIPTION: Final = f"""
executable = /bin/sh
arguments = "{EVIL.replace("'", "''").replace('"', '""').replace(' ', "' '")}"
batch_name = {EVIL}
description = {EVIL}
notify_user = {LINK}
log_notes = {EVIL}
transfer_input_files = {LINK}
My.Evil = "{EVIL.replace('"', chr(92) + '"')}"
My.Link = "{LINK}"
hold = true
queue
"""
PROGRAM: Final = """#!/bin/sh
name='<x-evil onclick=alert(1)>.html'
printf '%s' "$1" >"$name"
printf '%s' "$1"
printf '%s' "$1" >&2
exit 1
"""
FOUND: Final = """() => ({
    script: window.evil === undefined,
    elements: document.querySelectorAll('x-evil, [onclick], [onerror], script:not([src]), style, [style], iframe, base').length,
    elsewhere: [...document.links, ...document.forms].map(each => each.href ?? each.getAttribute('action') ?? '')
        .filter(each => /^[a-z]+:/i.test(each) && !each.startsWith(location.origin + '/')),
})"""
GOOD: Final = {"script": True, "elements": 0, "elsewhere": []}


async def ask(look: Looks, method: str, path: str, **said: Any) -> Any:
    async with (
        aiohttp.ClientSession(look.address, headers=look.headers) as session,
        session.request(method, path, **said) as response,
    ):
        text = await response.text()
        assert 200 == response.status, text
        return json.loads(text)


async def addresses(look: Looks, cluster: int) -> dict[Page, str]:
    """Where each page is that is declared, for a job, a machine and a cycle that there are."""
    async with asyncio.timeout(60):
        while not (machines := (await ask(look, "GET", "/v2/machines:use"))["machines"]):
            await asyncio.sleep(0.05)
        while not (cycles := (await ask(look, "GET", "/v2/negotiations"))["negotiations"]):
            await asyncio.sleep(0.05)
    words = {"{name}": quote(machines[0]["name"]), "{cycle}": str(cycles[0]["cycle"])}
    found: dict[Page, str] = {}
    for page in PAGES:
        path = page.path.replace("{id}", str(cluster) if "clusters" in page.path else f"{cluster}.0")
        for name, word in words.items():
            path = path.replace(name, word)
        assert "{" not in path, f"{page}: what stands for this parameter?"
        found[page] = path
    return found
