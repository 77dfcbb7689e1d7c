"""What the services hear of people who have come with a token."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

from tests.integration.iam.gate import Gate, gate_on

from kettle.auth.mapping.levels import Level
from kettle.runtime.people import People
from kettle.testing.services import Backend

WITHIN_S = 10.0
RULES = """\
[[rules]]
when.issuer = '{issuer}'
when.groups = '/wheel'
when.subject = '/^([a-z]+)$/'
owner = '\\1'
levels = ["ADMINISTRATOR"]
accounting_group = "group_wheel"
"""
PLAIN = """\
[[rules]]
when.issuer = '{issuer}'
when.subject = '/^([a-z]+)$/'
owner = '\\1'
"""


@asynccontextmanager
async def service(gate: Gate) -> AsyncGenerator[People]:
    """What a schedd knows."""
    people = People()
    async with gate.member("schedd") as bus:
        following = asyncio.create_task(people.follow(bus, gate.subjects))
        try:
            yield people
        finally:
            following.cancel()


async def until(people: People, group: str, levels: set[Level]) -> None:
    async with asyncio.timeout(WITHIN_S):
        while (people.accounting_group("ada"), set(people.levels("ada"))) != (group, levels):
            await asyncio.sleep(0.01)


async def test_groups_and_levels_are_told_and_taken_back(backend: Backend, tmp_path: Path) -> None:
    """
    As long as the rule is there and no longer, also if it goes while iam is away: then nobody keeps a level by its absence.
    """
    async with gate_on(backend, tmp_path, RULES) as gate, service(gate) as people:
        token, rules = gate.token("ada", groups=["/wheel"]), Path(gate.settings.authorization.rules)
        async with gate.bus(token):
            await until(people, "group_wheel", {Level.ADMINISTRATOR})
            rules.write_text(PLAIN.replace("{issuer}", gate.issuer.url))
            await until(people, "", set())
        rules.write_text(RULES.replace("{issuer}", gate.issuer.url))
        await gate.stop()
        await gate.start()
        async with gate.bus(token):
            await until(people, "group_wheel", {Level.ADMINISTRATOR})
            await gate.stop()
            rules.write_text(PLAIN.replace("{issuer}", gate.issuer.url))
            await gate.start()
            await until(people, "", set())  # its connection is ended, and it has come again


async def test_a_scope_limits_what_a_rule_gives(backend: Backend, tmp_path: Path) -> None:
    """
    Who shows a token for reading has no more by it, whatever the rule says; the accounting group is no right.
    """
    everybody = RULES.replace("when.groups = '/wheel'\n", "")
    async with (
        gate_on(backend, tmp_path, everybody) as gate,
        service(gate) as people,
        gate.bus(gate.token("ada", scope="condor:/READ")),
    ):
        await until(people, "group_wheel", set())


async def test_what_was_said_is_there_after_a_restart_of_the_server(backend: Backend, tmp_path: Path) -> None:
    """It is said again only when half of its life has passed, so the bus itself must not forget it."""
    async with gate_on(backend, tmp_path, RULES) as gate:
        async with gate.bus(gate.token("ada", groups=["/wheel"])), service(gate) as people:
            await until(people, "group_wheel", {Level.ADMINISTRATOR})
        await gate.stop()
        await gate.server.stop()
        await gate.server.start()
        async with service(gate) as people:
            await until(people, "group_wheel", {Level.ADMINISTRATOR})
        await gate.start()
