"""What the services hear of people who have come with a token."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from tests.integration.iam.gate import DOMAIN, Gate, gate_on

from kettle import VERSION
from kettle.auth.mapping.levels import Level
from kettle.bus.ports import RefusedError, Served
from kettle.runtime.authorization import Authorization
from kettle.runtime.authorizer import Authorizer, SettingPlaces
from kettle.runtime.deeds import Outbox
from kettle.runtime.people import People
from kettle.testing.patience import PATIENCE_S
from kettle.testing.services import Backend
from kettle_wire.commands.schedd import FIND_SPOOL, FindSpool, SpoolFound
from kettle_wire.identity import Identity

RULES = """\
[[rules]]
when.issuer = '{issuer}'
when.groups = '/wheel'
when.subject = '/^([a-z]+)$/'
owner = '\\1'
levels = ["ADMINISTRATOR"]
accounting_group = "group_wheel"
"""
WRITERS = RULES.replace("ADMINISTRATOR", "WRITE")
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
    async with asyncio.timeout(PATIENCE_S):
        while (await people.accounting_group("ada"), set(people.levels("ada"))) != (group, levels):
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


async def test_what_a_rule_gives_is_known_before_the_first_command(backend: Backend, tmp_path: Path) -> None:
    """
    A service that has heard nothing yet, and is asked by somebody who has just been let in, learns it before it decides; only who
    may really not ask is refused, once.
    """
    rules = WRITERS + PLAIN
    async with gate_on(backend, tmp_path, rules) as gate, gate.member("schedd") as schedd:
        people = People()
        lists = Authorization(allow={"READ": ("nobody@*",)}, domain=DOMAIN)
        decides = Authorizer("schedd", lambda: lists, SettingPlaces(None), people)
        schedd.authorize_by(decides, learn=people.on(schedd, gate.subjects, follows=True))
        outbox = Outbox(tmp_path / "deeds", "schedd")
        schedd.audit_by(outbox)
        await schedd.serve("schedd", "schedd", [Served(FIND_SPOOL, found)], version=VERSION)
        async with gate.bus(gate.token("ada", groups=["/wheel"])) as ada:
            await ada.call(FIND_SPOOL, "schedd", FindSpool(cluster=1))
        assert "group_wheel" == await people.accounting_group("ada")
        async with gate.bus(gate.token("bob"), "bob") as bob:
            with pytest.raises(RefusedError, match="has not the level READ"):
                await bob.call(FIND_SPOOL, "schedd", FindSpool(cluster=1))
    [deeds] = (tmp_path / "deeds").iterdir()
    [denial] = deeds.read_text().splitlines()
    assert "bob@pool.example has not the level READ" in denial


async def test_an_access_point_that_has_joined_reads_of_those_who_command_it(
    backend: Backend, tmp_path: Path
) -> None:
    """
    It follows nothing: levels, accounting groups and bans hold with the next command, also for who has an account there, and after
    an iam has been away.
    """
    async with gate_on(backend, tmp_path, WRITERS + PLAIN) as gate, gate.member("ap1") as schedd:
        people = People()
        lists = Authorization(allow={"READ": ("bob@*",)}, domain=DOMAIN)
        decides = Authorizer("schedd", lambda: lists, SettingPlaces(None), people)
        schedd.authorize_by(decides, learn=people.on(schedd, gate.subjects, follows=False))
        await schedd.serve("schedd", "ap1", [Served(FIND_SPOOL, found)], version=VERSION)
        async with gate.bus(gate.token("ada", groups=["/wheel"])) as ada, gate.member("bob") as bob:
            await ada.call(FIND_SPOOL, "ap1", FindSpool(cluster=1))
            assert "group_wheel" == await people.accounting_group("ada")
            await bob.call(FIND_SPOOL, "ap1", FindSpool(cluster=1))
            async with gate.administrator() as iam:
                await iam.ban("user:bob", reason="mines coins")
            with pytest.raises(RefusedError, match=r"bob@pool\.example is banned by [a-z]+$"):
                await bob.call(FIND_SPOOL, "ap1", FindSpool(cluster=1))
            await ada.call(FIND_SPOOL, "ap1", FindSpool(cluster=1))
            await gate.stop()
            with pytest.raises(RefusedError, match=r"bob@pool\.example is banned by [a-z]+$"):
                await bob.call(FIND_SPOOL, "ap1", FindSpool(cluster=1))
            await gate.start()
            async with gate.administrator() as iam:
                await iam.unban("user:bob")
            await bob.call(FIND_SPOOL, "ap1", FindSpool(cluster=1))


async def found(request: FindSpool, caller: Identity) -> SpoolFound:
    return SpoolFound(shadow="")


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
