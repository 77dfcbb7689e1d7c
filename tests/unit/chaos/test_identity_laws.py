"""The laws about iam's record find what they are there to find."""

from collections.abc import Sequence
from pathlib import Path

import pytest

from kettle.testing.chaos.evidence import Evidence
from kettle.testing.chaos.identity_laws import on_record, tokens_of_jobs
from kettle.testing.chaos.identity_workload import IdentityPromises, Joined
from kettle_wire.events import (
    AdministratorActed,
    BanSet,
    Event,
    JoinTokenCreated,
    JoinTokenUsed,
    SessionOpened,
    SessionRenewed,
    TokenIssued,
    WorkerJoined,
)


def promises() -> IdentityPromises:
    return IdentityPromises(
        join_tokens=[Joined(token="t1", max_uses=1, machines={"m1": "U1"})],
        access_tokens=["a1"],
        renewals={"s1": 1},
        bans=["user:eve"],
        deeds={"ada": True, "bob": False},
    )


def used(machine: str, key: str) -> Event:
    return JoinTokenUsed(token="t1", name=machine, key=key, address="", at=0.0)


def acted(name: str) -> Event:
    sentence = f'name="{name}", setting="factor", value=7.0'
    return AdministratorActed(who="me", action="a", where="b", sentence=sentence, by="negotiator", at=0.0)


CREATED = JoinTokenCreated(token="t1", hash="", expires=0.0, max_uses=1, by="me", at=0.0)
USED = used("m1", "U1")
WORKER = WorkerJoined(worker="m1", key="U1", token="t1", expires=0.0, at=0.0)
ISSUED = TokenIssued(token="a1", subject="me", grant="bus", expires=0.0, at=0.0)
OPENED = SessionOpened(session="s1", subject="me", hash="", lifetime=1.0, ends=0.0, by="me", at=0.0)
RENEWED = SessionRenewed(session="s1", hash="", address="", at=0.0)
BANNED = BanSet(whom="user:eve", by="me", at=0.0)
ACTED = acted("ada")
WHOLE = (CREATED, USED, WORKER, ISSUED, OPENED, RENEWED, BANNED, ACTED)


def problems(past: Sequence[Event]) -> list[str]:
    return [each for law in on_record(promises(), past) for each in law.problems]


def test_a_record_that_has_everything_breaks_no_law() -> None:
    """Also where something was done of which nobody was told."""
    assert [] == problems(WHOLE)
    assert [] == problems([*WHOLE, acted("bob"), RENEWED])


@pytest.mark.parametrize("lost", WHOLE, ids=lambda event: type(event).__name__)
def test_what_was_lost_is_found(lost: Event) -> None:
    """Whatever it is that was answered."""
    assert [] != problems([each for each in WHOLE if each is not lost])


@pytest.mark.parametrize(
    ("more", "says"),
    [
        (used("m2", "U2"), "has 1 uses"),
        (USED, "has 1 uses"),
        (BANNED, "recorded 2 times"),
        (ACTED, "recorded 2 times"),
        (acted("eve"), "eve is recorded 1 times"),
    ],
    ids=["a further machine", "a machine twice", "a ban", "a deed", "a deed that nobody asked for"],
)
def test_what_is_too_much_is_found(more: Event, says: str) -> None:
    """One use more than a token has, or the same twice."""
    assert says in " ".join(problems([*WHOLE, more]))


def test_who_came_with_a_token_that_was_withdrawn_breaks_a_law() -> None:
    """And so does who was taken for another."""
    made = promises()
    made.mistaken.append("turn 1: somebody came with a token that was withdrawn")
    assert made.mistaken == [each for law in on_record(made, WHOLE) for each in law.problems]


def test_a_job_that_begins_without_its_token_breaks_a_law(tmp_path: Path) -> None:
    """What it has had is what it has written down itself."""
    evidence = Evidence.prepare(tmp_path / "evidence", tmp_path / "work")
    assert "use_oauth_services" not in evidence.description("b", [1.0])
    assert "use_oauth_services = kettle" in evidence.description("b", [1.0], token=True)
    (evidence.directory / "with_token").write_text("b.0\nb.1\n")
    assert (True, 2) == ((law := tokens_of_jobs(evidence)).kept, law.examined)
    (evidence.directory / "without_token").write_text("b.2\n")
    assert ["b.2 began without its token"] == tokens_of_jobs(evidence).problems
