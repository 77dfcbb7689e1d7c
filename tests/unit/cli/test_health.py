"""`kettle health`."""

import asyncio
import json

import pytest
from aiohttp import web

from kettle.runtime import health
from kettle.runtime.http_server import serving
from kettle_services.cli.__main__ import main


async def asked(*words: str, ready: bool) -> int:
    application = web.Application()
    health.add_health(application, {"ready": lambda: ready})
    async with serving(application, "127.0.0.1", 0) as port:
        return await asyncio.to_thread(main, ["health", "--port", str(port), *words])


@pytest.mark.parametrize("ready", [True, False])
async def test_it_lives_whether_it_is_ready_or_not(ready: bool) -> None:
    """Who waits for a server is not restarted for it; readiness is another question."""
    assert 0 == await asked(ready=ready)
    assert (0 if ready else 1) == await asked("--ready", ready=ready)


async def test_it_says_what_is_missing(capsys: pytest.CaptureFixture[str]) -> None:
    """Each check by its name, for people and for programs."""
    await asked("--ready", ready=False)
    assert "ready: no\n" == capsys.readouterr().out
    await asked("--ready", "--json", ready=False)
    assert {"ready": False} == json.loads(capsys.readouterr().out)


def test_nobody_is_there(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """A sentence says what was asked where, or that no port is known."""
    monkeypatch.delenv("KETTLE_HEALTH_PORT", raising=False)
    assert 1 == main(["health"])
    assert "no port is known: give --port" in capsys.readouterr().err
    assert 1 == main(["health", "--port", "9"])
    assert "nothing answers at 127.0.0.1:9" in capsys.readouterr().err
