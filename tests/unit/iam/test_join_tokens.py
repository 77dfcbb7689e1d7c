"""Who may join with a join token."""

import pytest

from kettle_services.iam.domain import join_tokens
from kettle_services.iam.domain.join_tokens import Joined, Joining, JoinTokenParts, Lives, Misused, digest
from kettle_services.iam.domain.machine_grants import of_account
from kettle_services.iam.domain.refusals import Code, Denied
from kettle_services.iam.domain.state import Register
from kettle_wire.events import BanSet, JoinTokenCreated, JoinTokenRevoked

PIN = "0" * 64
OF_ADA = of_account("ada")


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
    joined = join_tokens.joined(known, joining, pin=pin, lives=Lives(pool=0.0, own=1000.0), now=now)
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
    "text",
    [
        "",
        "kettle-join-1.a.b",
        "kettle-join-2.a.b.c",
        "kettle-join-1.a..c",
        "a.b.c.d",
        "kettle-join-1.a.b.\u00e9",
    ],
)
def test_what_is_no_join_token_is_refused(text: str) -> None:
    """With what it has to look like."""
    with pytest.raises(Denied, match=r"kettle-join-1\.ID\.SECRET\.PIN"):
        join_tokens.parse(text)


def test_the_token_of_a_lease_admits_its_machine_alone() -> None:
    """Under the lease's name and no other, with a credential that ends with the lease."""
    known = register(machine="p-1-1", life=50.0)
    with pytest.raises(Denied) as refusal:
        join(known, machine("p-1-2"))
    assert Code.JOIN_OTHER_MACHINE == refusal.value.code
    worker = join(known, machine("p-1-1")).worker
    assert (True, 200.0) == (worker.leased, worker.expires)


def test_the_shorter_life_of_a_credential_counts() -> None:
    """The pool's, or the token's."""
    for lifetime, expires in ((10.0, 160.0), (0.0, 200.0), (100.0, 200.0)):
        found = join_tokens.joined(
            register(machine="n1", life=50.0),
            machine(),
            pin=PIN,
            lives=Lives(pool=lifetime, own=1000.0),
            now=150.0,
        )
        assert expires == found.worker.expires


def test_a_lease_is_withdrawn_whatever_has_become_of_it() -> None:
    """
    Its machine is cut off, or may not join any more; said again it changes nothing; others are not for it to remove.
    """
    waiting = register(machine="n1", life=50.0)
    for stream, event in join_tokens.withdrawn(waiting, "n1", by="scaler", now=160.0):
        waiting.apply(stream, event)
    assert "revoked" == refused(waiting, machine())
    assert [] == join_tokens.withdrawn(waiting, "n1", by="scaler", now=161.0)

    there = register(machine="n1", life=50.0)
    join(there, machine())
    changes = join_tokens.withdrawn(there, "n1", by="scaler", now=160.0)
    assert ["jointoken/t", "worker/n1"] == [stream for stream, _ in changes]

    of_somebody = register()
    join(of_somebody, machine())
    with pytest.raises(Denied, match="is no machine of a lease"):
        join_tokens.withdrawn(of_somebody, "n1", by="scaler", now=160.0)


def test_a_machine_of_a_lease_is_forgotten_when_its_credential_has_ended() -> None:
    """Other machines stay known: their administrators ask for them."""
    leased = register(machine="n1", life=50.0)
    join(leased, machine())
    assert [] == join_tokens.ended(leased, now=199.0)
    assert ["worker/n1"] == [stream for stream, _ in join_tokens.ended(leased, now=200.0)]
    other = register(life=50.0)
    join(other, machine())
    assert [] == join_tokens.ended(other, now=1e9)


def test_nobody_has_more_machines_of_his_own_than_the_pool_lets_him() -> None:
    """
    Those that are there and those that may still come count together; what others made for him does not.
    """
    known = register(owner="ada", by="ada", max_uses=3, grant=OF_ADA)
    join(known, machine())
    join_tokens.require_own_room(known, "ada", more=2, limit=5, now=150.0)
    with pytest.raises(Denied, match=r"has 1 machine\(s\) and join tokens for 2 more"):
        join_tokens.require_own_room(known, "ada", more=3, limit=5, now=150.0)
    join_tokens.require_own_room(known, "ada", more=4, limit=5, now=200.0)  # the token is over
    join_tokens.require_own_room(register(owner="ada", max_uses=5), "ada", more=1, limit=1, now=150.0)


def test_nobody_takes_the_name_of_a_lease() -> None:
    """
    Not before its machine comes, and not beside it; people's own machines have no name that a lease may get, and a lease none that
    is taken.
    """
    for own in ({}, {"owner": "ada", "by": "ada", "grant": OF_ADA}):
        known = register(**own)
        known.apply(
            "jointoken/l",
            JoinTokenCreated(token="l", hash=digest("l"), machine="n1", expires=120.0, by="prov", at=100.0),
        )
        with pytest.raises(Denied, match="n1 is the name of a lease"):
            join(known, machine())
        known.apply("jointoken/l", JoinTokenRevoked(token="l", by="scaler", at=140.0))
        join(known, machine())
        with pytest.raises(Denied, match="there is a machine n1 already"):
            join_tokens.require_free(known, "n1", now=160.0)
        join_tokens.require_free(known, "n2", now=160.0)

    for name in ("batch-17-1", "big-mem-by-0123456789"):
        with pytest.raises(Denied, match="or could be one's"):
            join(register(owner="ada", by="ada", grant=OF_ADA), machine(name))
        assert name == join(register(), machine(name)).worker.worker
        leased = register(machine=name, owner="ada", by="ada", life=50.0)
        assert join(leased, machine(name)).worker.leased
        join_tokens.require_free(leased, name, now=160.0)
