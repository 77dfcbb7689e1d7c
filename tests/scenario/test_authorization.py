"""The table [authorization] of a running pool: who is refused, and what the refusal says."""

from pathlib import Path
from typing import Any

import pytest

from kettle.client import CommandRefusedError
from kettle.testing.throwaway_pool import ThrowawayPool

from .condor import Condor
from .persons import somebody

DESCRIPTION = "executable = /bin/true\nrequirements = false\nqueue\n"


@pytest.fixture(scope="module")
def configuration() -> dict[str, Any]:
    return {
        "cpus": 1,
        "settings": {
            "authorization": {
                "domain": "pool",
                "deny": {"WRITE_SCHEDD": ["eve@*"], "READ_NEGOTIATOR": ["*@*"]},
            }
        },
    }


async def as_eve(pool: ThrowawayPool, tmp_path: Path) -> None:
    lines = (pool.home / "kettle.toml").read_text().splitlines()
    line = next(number for number, text in enumerate(lines, 1) if "eve@*" in text)
    async with somebody(pool, "eve", tmp_path) as eve:
        with pytest.raises(CommandRefusedError) as refused:
            await eve.submit(DESCRIPTION, cwd=tmp_path)
        assert "denied" == refused.value.code
        assert (
            "eve@pool has not the level WRITE, which schedd.submit takes: denied by "
            f"{pool.home}/kettle.toml:{line}: deny WRITE_SCHEDD = eve@*"
        ) in str(refused.value)
        assert [] == await eve.jobs()
        with pytest.raises(
            CommandRefusedError, match=r"READ, which negotiator.query_priorities takes: denied"
        ):
            await eve.accountant.priorities([])


async def test_a_person_is_refused_by_the_lists_of_the_pool(pool: ThrowawayPool, tmp_path: Path) -> None:
    """
    Over the bus, with who, level, rule and line; what the lists do not name goes on, and nothing is in the queue.
    """
    with pytest.raises(CommandRefusedError, match=r"which schedd.act takes: denied by"):
        await as_eve(pool, tmp_path)  # at its end her jobs would be removed
    async with somebody(pool, "grace", tmp_path) as grace:
        assert [] == await grace.jobs()
        with pytest.raises(CommandRefusedError, match=r"denied by .*: deny READ_NEGOTIATOR = \*@\*"):
            await grace.accountant.priorities([])


async def told_to_eve(pool: ThrowawayPool, tmp_path: Path) -> None:
    lines = (pool.home / "kettle.toml").read_text().splitlines()
    line = {
        word: number
        for number, text in enumerate(lines, 1)
        for word in ("eve@*", "*@*")
        if f'"{word}"' in text
    }
    async with somebody(pool, "eve", tmp_path) as eve:
        there = await eve.rights.at("schedd")
        assert ("eve@pool", "schedd") == (there.identity, there.service)
        assert [("READ", True), ("WRITE", False), ("ADMINISTRATOR", False)] == [
            (right.level, right.allowed) for right in there.rights
        ]
        wrote = f"{pool.home}/kettle.toml:{line['eve@*']}: deny WRITE_SCHEDD = eve@*"
        submit = await eve.rights.may("schedd.submit")
        assert (False, "WRITE", wrote) == (submit.allowed, submit.level, submit.rule)
        assert f"denied by {wrote}" == submit.missing
        looks = await eve.rights.may("negotiator.query_priorities")
        assert f"{pool.home}/kettle.toml:{line['*@*']}: deny READ_NEGOTIATOR = *@*" == looks.rule
        assert "has no allow.ADMINISTRATOR" in there.rights[2].missing
        assert (
            "eve is not in administrators of [negotiator]"
            in (await eve.rights.may("negotiator.set_principal")).missing
        )
        with pytest.raises(CommandRefusedError, match=r"no command schedd\.submitt; did you mean submit"):
            await eve.rights.may("schedd.submitt")


async def test_each_service_says_what_somebody_may_do(pool: ThrowawayPool, tmp_path: Path) -> None:
    """By level and by command, with the line that decides; it says so also to whom it refuses everything."""
    with pytest.raises(CommandRefusedError, match=r"which schedd.act takes: denied by"):
        await told_to_eve(pool, tmp_path)  # at its end her jobs would be removed
    mine = await pool.client.rights.at("negotiator", levels=["ADMINISTRATOR"])
    assert (True, "[negotiator] administrators") == (
        mine.rights[0].allowed,
        mine.rights[0].rule.partition(":")[0],
    )


async def test_condor_ping_asks_the_daemon(condor: Condor) -> None:
    """As a sentence, a table, a paragraph with the rule, or chosen attributes; one denial is status 1."""
    who = f"{condor.pool.client.pool.user}@pool"
    said = await condor("condor_ping")
    assert (
        0,
        f"WRITE command using (no encryption, no integrity, and FS) succeeded as {who} to local schedd.\n",
        "",
    ) == said
    said = await condor("condor_ping", "-table", "read", "submit", "DC_NOP_DAEMON", "60023")
    assert 1 == said.status
    assert [
        "         Instruction Authentication Encryption Integrity Decision Identity",
        f"                read             FS       none      none    ALLOW {who}",
        f"              submit             FS       none      none    ALLOW {who}",
        f"       DC_NOP_DAEMON             FS       none      none     DENY {who}",
        f"               60023             FS       none      none     DENY {who}",
    ] == said.out.splitlines()
    said = await condor("condor_ping", "-type", "negotiator", "-verbose", "READ")
    assert (1, True) == (said.status, "Authorized:                  FALSE\n" in said.out)
    assert "deny READ_NEGOTIATOR = *@*\n" in said.out
    assert (1, "", "") == await condor("condor_ping", "-quiet", "ALL")
    said = await condor("condor_ping", "WRITE", "DAEMON", "-af", "Name", "Result", "MyRemoteUserName")
    assert f"WRITE ALLOWED {who}\nDAEMON DENIED {who}\n" == said.out
    for words, complaint in (
        (("NOSUCH_LEVEL1",), 'ERROR: Could not understand TOKEN "NOSUCH_LEVEL1".'),
        (("-type", "schedule", "READ"), "ERROR: unrecognized daemon type: schedule"),
        (("-address", "<127.0.0.1:9618>"), "daemons have no addresses here"),
        (("-quiet", "-table"), "only one output mode may be specified"),
        (("sbmit",), "people can send no command schedd.sbmit; did you mean submit?"),
    ):
        said = await condor("condor_ping", *words)
        assert (1, True) == (said.status, complaint in said.err), said


async def test_kettle_whoami_asks_services(pool: ThrowawayPool) -> None:
    """A pool needs no iam for it; the exit status of --may is the answer."""
    _, table, _ = await pool.kettle("whoami", "--at", "schedd", "--at", "negotiator")
    assert 7 == len(table.splitlines())
    assert "negotiator  READ           no     denied by " in table
    status, said, _ = await pool.kettle("whoami", "--may", "negotiator.query_priorities")
    assert (1, True) == (status, said.startswith("negotiator.query_priorities: refused; it takes READ: "))
