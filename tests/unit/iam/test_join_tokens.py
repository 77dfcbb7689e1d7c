"""Who may join with a join token."""

import pytest

from kettle_services.iam.domain import join_tokens
from kettle_services.iam.domain.join_tokens import Joined, Joining, JoinTokenParts, Misused, digest
from kettle_services.iam.domain.refusals import Code, Denied
from kettle_services.iam.domain.state import Register
from kettle_wire.events import BanSet, JoinTokenCreated, JoinTokenRevoked

PIN = "0" * 64


def register(**own: object) -> Register:
    """One token `t` with the secret `s`, made at 100 s and valid until 200 s."""
    made = Register()
    values: dict[str, object] = {
        "token": "t",
        "hash": digest("s"),
        "expires": 200.0,
        "by": "grace",
        "at": 100.0,
    }
    made.apply("jointoken/t", JoinTokenCreated(**(values | own)))  # type: ignore[arg-type]
    return made


def machine(name: str = "n1", key: str = "UA", **own: object) -> Joining:
    values: dict[str, object] = {"name": name, "key": key, "address": "192.0.2.1"}
    return Joining(parts=JoinTokenParts("t", "s", PIN), **(values | own))  # type: ignore[arg-type]


def join(known: Register, joining: Joining, *, now: float = 150.0, pin: str = PIN) -> Joined:
    """Join, and fold what is recorded."""
    joined = join_tokens.joined(known, joining, pin=pin, lifetime=0.0, now=now)
    for stream, event in joined.changes:
        known.apply(stream, event)
    return joined


def refused(known: Register, joining: Joining, *, now: float = 150.0, pin: str = PIN) -> str:
    with pytest.raises(Misused) as caught:
        join(known, joining, now=now, pin=pin)
    assert joining.parts.secret not in str(caught.value).split()
    return caught.value.why


def test_a_lost_answer_is_given_again() -> None:
    """Within a minute, to the same key under the same name, and nothing is recorded a second time."""
    known = register()
    first = join(known, machine())
    again = join(known, machine(), now=209.0)
    assert (first.worker, []) == (again.worker, again.changes)
    assert "expired" == refused(known, machine(), now=211.0)


def test_a_second_machine_is_misuse() -> None:
    """Also one that has the same name, and one with the same key and another name."""
    known = register()
    join(known, machine())
    assert ["used"] * 3 == [
        refused(known, each) for each in (machine("n2", "UB"), machine("n1", "UB"), machine("n2", "UA"))
    ]


def test_each_misuse_has_its_reason() -> None:
    """Another pool, an unknown token, a wrong secret, too late, withdrawn, another owner, a banned owner."""
    assert "other_pool" == refused(register(), machine(), pin="1" * 64)
    assert "unknown" == refused(Register(), machine())
    assert "secret" == refused(register(hash=digest("another")), machine())
    assert "expired" == refused(register(), machine(), now=200.0)
    assert "other_owner" == refused(register(owner="ada"), machine(owner="bob"))
    withdrawn = register()
    withdrawn.apply("jointoken/t", JoinTokenRevoked(token="t", by="grace", at=120.0))
    assert "revoked" == refused(withdrawn, machine())
    banned = register(owner="ada")
    banned.apply("ban/user:ada", BanSet(whom="user:ada", by="grace", at=120.0, until=160.0))
    assert "banned" == refused(banned, machine())
    assert "ada" == join(banned, machine(), now=160.0).worker.owner


def test_a_token_admits_one_kind_of_machine() -> None:
    """A token for an access point admits no machine that runs jobs; nothing is an alarm about that."""
    with pytest.raises(Denied) as caught:
        join(register(joins="schedd"), machine())
    assert Code.JOIN_KIND == caught.value.code


def test_as_many_machines_join_as_it_has_uses() -> None:
    """And a name is taken until its machine has left."""
    known = register(max_uses=3)
    join(known, machine("n1", "UA"))
    with pytest.raises(Denied) as caught:
        join(known, machine("n1", "UB"))
    assert Code.JOIN_NAME_TAKEN == caught.value.code
    for stream, event in join_tokens.left(known, "n1", by="grace", now=160.0):
        known.apply(stream, event)
    join(known, machine("n1", "UB"))
    join(known, machine("n2", "UC"))
    assert "used" == refused(known, machine("n3", "UD"))


@pytest.mark.parametrize(
    "text", ["", "kettle-join-1.a.b", "kettle-join-2.a.b.c", "kettle-join-1.a..c", "a.b.c.d"]
)
def test_what_is_no_join_token_is_refused(text: str) -> None:
    """With what it has to look like."""
    with pytest.raises(Denied, match=r"kettle-join-1\.ID\.SECRET\.PIN"):
        join_tokens.parse(text)
