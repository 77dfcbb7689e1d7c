"""Tickets with which machines publish services: who gets one, and that it is good for nothing else."""

import stat
import time
from pathlib import Path
from typing import cast

import pytest

from kettle.auth.tokens.capabilities import require_level
from kettle.auth.tokens.checking.issuers import Issuer, Issuers
from kettle.auth.tokens.checking.parsing import parse
from kettle.auth.tokens.checking.verification import verify
from kettle.auth.tokens.issuing.key_store import KeyStore
from kettle.auth.tokens.verified import TokenError
from kettle.bus.ports import Asks, BusUnavailableError, RefusedError
from kettle.published.ticket import AUDIENCE, LIFETIME_S, SCOPE, TicketRefusedError, issuer_of
from kettle_services.gateway.published.tickets import TicketOffice
from kettle_wire.codes import RefusalCode
from kettle_wire.commands.gateway import AdmitServices
from kettle_wire.commands.schedd import NEEDED_TOKENS, AskNeededTokens, TokensNeeded
from kettle_wire.identity import daemon
from kettle_wire.jobs import JobId

JOB = AdmitServices(schedd="schedd", job=JobId(12, 0), attempt=3)


class Queue:
    """A queue in which one attempt runs."""

    def __init__(self) -> None:
        self.owner = "ada"
        self.error: Exception | None = None
        self.asked: list[AskNeededTokens] = []

    async def call(self, endpoint: object, name: str, request: AskNeededTokens, **_: object) -> TokensNeeded:
        assert (endpoint, name) == (NEEDED_TOKENS, "schedd")
        self.asked.append(request)
        if self.error is not None:
            raise self.error
        return TokensNeeded(owner=self.owner, tokens=[])


@pytest.fixture
def queue() -> Queue:
    return Queue()


def office_of(queue: Queue, path: Path, pool: str = "p") -> TicketOffice:
    return TicketOffice(cast("Asks", queue), path, pool=pool, url="https://g", ca="pem")


async def test_an_attempt_that_runs_gets_a_ticket(queue: Queue, tmp_path: Path) -> None:
    """
    The queue says whose it is; the gateway takes the ticket also after a restart, and no other pool's does.
    """
    made = await office_of(queue, tmp_path).admit(JOB, daemon("shadow"))
    assert (made.url, made.ca, made.left) == ("https://g", "pem", LIFETIME_S)
    assert made.ticket not in repr(made)
    ticket = await office_of(queue, tmp_path).check(made.ticket)
    assert (ticket.owner, ticket.session) == ("ada", "schedd#12.0#3")
    assert ticket.expires == pytest.approx(time.time() + LIFETIME_S, abs=30)
    assert [each.attempt for each in queue.asked] == [3, 3]
    with pytest.raises(TicketRefusedError):
        await office_of(queue, tmp_path, pool="other").check(made.ticket)
    (keys,) = tmp_path.iterdir()
    assert stat.S_IMODE(keys.stat().st_mode) == 0o600


async def test_an_attempt_that_is_over_gets_none_and_its_ticket_is_refused(
    queue: Queue, tmp_path: Path
) -> None:
    """Nor a job that has become somebody else's; where the queue does not answer, nobody can tell."""
    office = office_of(queue, tmp_path)
    text = (await office.admit(JOB, daemon("shadow"))).ticket
    queue.owner = "bob"
    with pytest.raises(TicketRefusedError, match="not ada's any more"):
        await office.check(text)
    queue.error = RefusedError(RefusalCode.NOT_RUNNING, "attempt 3 of job 12.0 does not run")
    with pytest.raises(TicketRefusedError) as refused:
        await office.check(text)
    assert refused.value.code == "job.not_running"
    with pytest.raises(RefusedError, match="does not run"):
        await office.admit(JOB, daemon("shadow"))
    queue.error = BusUnavailableError("nobody answers")
    for asked in (office.check(text), office.admit(JOB, daemon("shadow"))):
        with pytest.raises(RefusedError) as away:
            await asked
        assert away.value.code == RefusalCode.UNAVAILABLE


async def test_an_access_point_that_has_joined_gets_none(queue: Queue, tmp_path: Path) -> None:
    """Its queue could say that a job is anybody's."""
    with pytest.raises(RefusedError, match="has joined"):
        await office_of(queue, tmp_path).admit(JOB, daemon("shadow", "lab"))
    assert queue.asked == []


async def test_a_ticket_ends(queue: Queue, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """After its time it is refused, whatever the queue says."""
    office = office_of(queue, tmp_path)
    text = (await office.admit(JOB, daemon("shadow"))).ticket
    later = time.time() + LIFETIME_S + 301
    monkeypatch.setattr("kettle_services.gateway.published.tickets.time.time", lambda: later)
    with pytest.raises(TicketRefusedError) as refused:
        await office.check(text)
    assert refused.value.code == "token.expired"


async def test_a_ticket_is_good_for_nothing_else(queue: Queue, tmp_path: Path) -> None:
    """
    Nobody trusts its issuer; who did would find another audience; and who looked at neither would find no right.
    """
    office = office_of(queue, tmp_path)
    parsed = parse((await office.admit(JOB, daemon("shadow"))).ticket)
    pool = Issuer(url="https://iam.example.org", audiences=("https://iam.example.org",))
    with pytest.raises(TokenError, match="is not trusted here"):
        Issuers([pool]).of(parsed.claims["iss"])
    keys = KeyStore(tmp_path / "ticket-keys.json").ring(int(time.time())).key_set()
    trusting = Issuer(url=issuer_of("p"), audiences=("https://g",), profiles=("plain",))
    with pytest.raises(TokenError) as refused:
        verify(parsed, trusting, keys, time.time())
    assert refused.value.code == "token.audience"
    careless = Issuer(url=issuer_of("p"), audiences=(AUDIENCE,), profiles=("plain",))
    verified = verify(parsed, careless, keys, time.time())
    assert verified.scopes == (SCOPE,)
    with pytest.raises(TokenError) as useless:
        require_level(verified, careless)
    assert useless.value.code == "token.no_rights"


@pytest.mark.parametrize("text", ["", "x", "a.b.c", "e30.e30.e30"])
async def test_nonsense_is_no_ticket(queue: Queue, tmp_path: Path, text: str) -> None:
    """It is refused with a code, and the queue is not asked."""
    with pytest.raises(TicketRefusedError) as refused:
        await office_of(queue, tmp_path).check(text)
    assert refused.value.code.startswith("token.")
    assert queue.asked == []
