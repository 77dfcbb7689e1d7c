"""People who come onto the bus with a token of an issuer that the pool trusts."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio
from tests.integration.iam.gate import Gate, gate_on

from kettle.bus.ports import NotAcceptedError, RefusedError
from kettle.testing.services import Backend
from kettle_wire.commands.iam import OPEN_SESSION, WHO_AM_I, BeginSession, WhoAmI

RULES = """\
[[rules]]
when.issuer = '{issuer}'
when.subject = '/^([a-z]+)$/'
owner = '\\1'
"""


@pytest_asyncio.fixture
async def gate(backend: Backend, tmp_path: Path) -> AsyncIterator[Gate]:
    async with gate_on(backend, tmp_path, RULES) as made:
        yield made


async def test_who_has_a_token_speaks_as_whom_the_rules_make_of_it(gate: Gate) -> None:
    """A command arrives, its answer too, and the service hears the owner's name."""
    async with gate.bus(gate.token("ada")) as bus:
        said = await bus.call(WHO_AM_I, "iam", WhoAmI())
    assert "ada" == said.subject


async def test_a_token_that_only_reads_sends_no_commands(gate: Gate) -> None:
    """The server itself refuses the subject."""
    async with gate.bus(gate.token("ada", scope="condor:/READ")) as bus:
        assert "ada" == (await bus.call(WHO_AM_I, "iam", WhoAmI())).subject
        with pytest.raises(RefusedError, match="may not publish"):
            await bus.call(OPEN_SESSION, "iam", BeginSession(id="1", hash="0" * 64))


async def test_a_token_for_nothing_lets_nobody_in(gate: Gate) -> None:
    """Its scopes are for something else; who asks is told so."""
    with pytest.raises(NotAcceptedError):
        async with gate.bus(gate.token("ada", scope="storage.read:/")):
            pass
    status, known = await gate.get("/v1/whoami", gate.token("ada", scope="storage.read:/"))
    assert (200, "ada", []) == (status, known["subject"], known.get("levels", []))
