from contextlib import suppress

import msgspec
import pytest

from kettle.classad import parse
from kettle_services.collector.domain.ads import (
    Adverts,
    NotAnAdError,
    is_forwarded,
    is_picture,
    silent_key,
    type_of,
)
from kettle_services.collector.domain.machine_presence import sighting_of
from kettle_services.collector.domain.queries import Query, page
from kettle_wire.ads.daemon import SubmitterAd
from kettle_wire.ads.types import Ad, Expr
from kettle_wire.subjects import forwarded_key

NOW = 1000.0
encode = msgspec.msgpack.encode


def pool() -> Adverts:
    adverts = Adverts(lifetime=900.0)
    for name, memory in (("slot2@b", 2048), ("slot1@a", 1024)):
        ad: Ad = {
            "Name": name,
            "MyType": "Machine",
            "Memory": memory,
            "Requirements": Expr("TARGET.x > 1"),
            "ClaimId": "secret",
            "_CONDOR_PRIV_x": "secret",
        }
        adverts.put(f"Machine.{name}", encode(ad), NOW)
    demand = SubmitterAd(name="alice", schedd="ap", idle=3, running=2, held=1, requests=[])
    adverts.put("Submitter.ap=2Ealice", encode(demand), NOW)
    return adverts


def query(
    adverts: Adverts, kind: str = "", constraint: str = "", projection: tuple[str, ...] = ()
) -> list[Ad]:
    node = parse(constraint) if constraint else None
    return page(adverts, Query(kind=kind, constraint=node, projection=projection), NOW + 5, lambda: 0.0).ads


def test_ads_come_in_the_order_of_their_names() -> None:
    """A type selects its ads without regard to case; no type selects all."""
    assert ["slot1@a", "slot2@b"] == [ad["Name"] for ad in query(pool(), "machine")]
    assert ["alice", "slot1@a", "slot2@b"] == [ad["Name"] for ad in query(pool())]
    assert [] == query(pool(), "Scheduler")


def test_what_is_added() -> None:
    """
    An ad says what it is, when it was heard and what time it is; what it says itself stays, but for the counts of its
    updates, which are the collector's word.
    """
    counts = {
        "UpdatesTotal": 1,
        "UpdatesSequenced": 0,
        "UpdatesLost": 0,
        "UpdatesHistory": "0x" + 32 * "0",
    }
    adverts = Adverts(lifetime=900.0)
    adverts.put("Generic.x", encode({"Name": "x"}), NOW)
    adverts.put(
        "Generic.y",
        encode({"Name": "y", "MyType": "Z", "LastHeardFrom": 1, "mycurrenttime": 2, "updateslost": 9}),
        NOW,
    )
    assert [
        {"Name": "x", "MyType": "Generic", "LastHeardFrom": 1000, "MyCurrentTime": 1005, **counts},
        {"Name": "y", "MyType": "Z", "LastHeardFrom": 1, "mycurrenttime": 2, **counts},
    ] == query(adverts, "Generic")


@pytest.mark.parametrize(
    ("constraint", "expected"),
    [
        ("Memory > 1024", ["slot2@b"]),
        ("TARGET.Memory > 1024", ["slot2@b"]),
        ("MY.Memory > 1024 && MyCurrentTime == 1005 && time() == 1005", ["slot2@b"]),
        ("Memory", ["slot1@a", "slot2@b"]),
        ("NoSuch > 3", []),
        ('"a" + 1', []),
        ("NoSuch =?= undefined", ["alice", "slot1@a", "slot2@b"]),
    ],
)
def test_constraints(constraint: str, expected: list[str]) -> None:
    """The candidate is MY and TARGET; only what counts as true selects."""
    assert expected == [ad["Name"] for ad in query(pool(), constraint=constraint)]


def test_projection() -> None:
    """Only what exists is given, always with the type; expressions stay expressions."""
    projection = ("MEMORY", "requirements", "NoSuch")
    assert {"MyType": "Machine", "Memory": 1024, "Requirements": Expr("TARGET.x > 1")} == query(
        pool(), "Machine", projection=projection
    )[0]


def test_secrets_are_not_shown() -> None:
    """Capabilities that slipped into a public ad are dropped."""
    assert not [name for ad in query(pool()) for name in ad if "secret" == ad[name]]


def test_a_submitter() -> None:
    """A schedd's demand is shown as the ad that tools know."""
    (ad,) = query(
        pool(), "Submitter", projection=("Name", "ScheddName", "IdleJobs", "RunningJobs", "HeldJobs")
    )
    assert {
        "MyType": "Submitter", "Name": "alice", "ScheddName": "ap", "IdleJobs": 3, "RunningJobs": 2, "HeldJobs": 1,
    } == ad  # fmt: skip


def test_what_is_no_ad_changes_nothing() -> None:
    """Bytes that are no ad are refused, and the ad that was there stays."""
    adverts = pool()
    for data in (b"\x93", b"\x81\xa1\xff\x01", b"\x81\xa1A" + b"\x91" * 100_000):
        with pytest.raises(NotAnAdError):
            adverts.put("Machine.slot1@a", data, NOW)
    assert 2 == len(query(adverts, "Machine"))


def test_stale() -> None:
    """
    An ad whose end the bus forgot to tell is dropped later than its lifetime, which it may state shorter.
    """
    adverts = Adverts(lifetime=100.0)
    adverts.put("Machine.a", encode({"Name": "a", "ClassAdLifetime": 10}), NOW)
    adverts.put("Machine.b", encode({"Name": "b", "ClassAdLifetime": 1000}), NOW)
    assert [] == adverts.stale(NOW + 14)
    assert ["Machine.a"] == adverts.stale(NOW + 149)
    assert ["Machine.a", "Machine.b"] == adverts.stale(NOW + 151)
    assert adverts.drop("Machine.a") is not None
    assert adverts.drop("Machine.a") is None
    assert ["Machine.b"] == adverts.known()
    adverts.put("Machine.c", encode({"Name": "c", "ClassAdLifetime": -1}), NOW)
    assert "Machine.c" not in adverts.stale(NOW + 1)


def test_forwarded_ads_are_apart_and_say_where_they_come_from() -> None:
    """
    By the key, which follows from the credential, not by what they say; the same name here is another ad. They are shown
    to those who ask for them, and no machine of ours is seen in them.
    """
    adverts = pool()
    own = "Machine.slot1@a"
    key = forwarded_key("view@physics", own)
    ad: Ad = {
        "Name": "slot1@a",
        "Memory": 1,
        "forwardedFROM": "biology",
        "UpdatesTotal": 7,
        "ClaimId": "secret",
    }
    folded = adverts.put(key, encode(ad), NOW)
    assert sighting_of(key, {**folded, "machine": "a"}) is None
    assert [1024, 2048] == [each["Memory"] for each in query(adverts, "Machine")]
    assert 3 == len(query(adverts))
    asked = Query(kind="Machine", constraint=parse('ForwardedFrom == "physics"'), forwarded=True)
    (found,) = page(adverts, asked, NOW, lambda: 0.0).ads
    assert (1, "physics", 7, "Machine") == tuple(
        found[name] for name in ("Memory", "ForwardedFrom", "UpdatesTotal", "MyType")
    )
    assert "ClaimId" not in found
    assert ["ForwardedFrom"] == [name for name in found if name.lower() == "forwardedfrom"]
    both = page(adverts, Query(kind="Machine", forwarded=True), NOW, lambda: 0.0).ads
    assert ["slot1@a", "slot1@a", "slot2@b"] == [each["Name"] for each in both]
    adverts.drop(key)
    assert [1024, 2048] == [each["Memory"] for each in query(adverts, "Machine")]


def test_nobody_says_of_itself_that_it_is_forwarded() -> None:
    """Neither is a forwarded submitter read as one of ours."""
    adverts = pool()
    adverts.put("Machine.x", encode({"Name": "x", "ForwardedFrom": "physics"}), NOW)
    assert all("ForwardedFrom" not in ad for ad in query(adverts, "Machine"))
    adverts.put(forwarded_key("view@physics", "Submitter.a"), encode({"Name": "a", "IdleJobs": 3}), NOW)
    found = page(adverts, Query(kind="Submitter", forwarded=True), NOW, lambda: 0.0).ads
    assert [3, 3] == [ad["IdleJobs"] for ad in found]


@pytest.mark.parametrize("name", ["ce.site.example", "CE.site.example", "second@ce.site.example"])
def test_a_registry_takes_ads_under_the_name_of_their_credential(name: str) -> None:
    """As it is, or behind the name of one of several."""
    adverts = Adverts(lifetime=900.0, own_names={"scheduler"})
    key = forwarded_key("view@ce.site.example", "Scheduler.x")
    adverts.put(key, encode({"Name": name, "ComputeEntrypoint": True}), NOW)
    (found,) = page(adverts, Query(kind="Scheduler", forwarded=True), NOW, lambda: 0.0).ads
    assert (name, "ce.site.example") == (found["Name"], found["ForwardedFrom"])


@pytest.mark.parametrize(
    "name", ["ce.other.example", "xce.site.example", "ce.site.example@ce.other.example", "", 7]
)
def test_a_registry_refuses_ads_of_other_names(name: str | int) -> None:
    """
    One site cannot pass for another; the last ad that was right stays, and other types and own ads are not its matter.
    """
    adverts = Adverts(lifetime=900.0, own_names={"scheduler"})
    key = forwarded_key("view@ce.site.example", "Scheduler.x")
    adverts.put(key, encode({"Name": "ce.site.example"}), NOW)
    with pytest.raises(NotAnAdError, match=r"under the name of its credential, ce\.site\.example"):
        adverts.put(key, encode({"Name": name}), NOW)
    adverts.put(forwarded_key("view@ce.site.example", "Machine.x"), encode({"Name": name}), NOW)
    adverts.put("Scheduler.own", encode({"Name": "own"}), NOW)
    found = page(adverts, Query(kind="Scheduler", forwarded=True), NOW, lambda: 0.0).ads
    assert {"ce.site.example", "own"} == {ad["Name"] for ad in found}


def test_what_a_registry_keeps_is_seen_among_what_is_forwarded() -> None:
    """
    The ad of an entrypoint that is silent is of the pool that it came from, and nobody else sees it; no updates of it are counted.
    """
    adverts = Adverts(lifetime=900.0, own_names={"scheduler"})
    key = silent_key(forwarded_key("view@ce.site.example", "Scheduler.x"))
    ad: Ad = {"Name": "ce.site.example", "Absent": True, "LastHeardFrom": 1000}
    adverts.put(key, encode(ad), NOW)
    assert [] == page(adverts, Query(kind="Scheduler"), NOW, lambda: 0.0).ads
    (found,) = page(adverts, Query(kind="Scheduler", forwarded=True), NOW, lambda: 0.0).ads
    assert ad | {"ForwardedFrom": "ce.site.example"} == {name: found[name] for name in (*ad, "ForwardedFrom")}
    assert "UpdatesTotal" not in found
    assert (True, True, "Scheduler") == (is_picture(key), is_forwarded(key), type_of(key))


@pytest.mark.parametrize(
    "key",
    [
        "Forwarded",
        "Forwarded.",
        "Silent.Forwarded",
        "Silent.",
        "Forwarded.view=40physics",
        "Forwarded.=ZZ.Machine.a",
    ],
)
def test_forwarded_keys_that_are_none(key: str) -> None:
    """Whatever stands there, it is no ad of this pool."""
    adverts = pool()
    with suppress(NotAnAdError):
        adverts.put(key, encode({"Name": "x"}), NOW)
    assert 2 == len(query(adverts, "Machine"))
    adverts.drop(key)


def test_a_machine_that_sleeps_is_seen_among_the_machines() -> None:
    """Its slots are ads of machines, of which no updates are counted: it says nothing."""
    adverts = Adverts(lifetime=900.0)
    ad: Ad = {"Name": "slot1@desk1", "Machine": "desk1", "Offline": True, "MyType": "Machine"}
    adverts.put("Offline.slot1=40desk1", msgspec.msgpack.encode(ad), 10.0)
    query = Query(kind="Machine", constraint=parse("Offline =?= true"), projection=[], limit=10)
    [found] = page(adverts, query, 10.0, lambda: 0.0).ads
    assert ("slot1@desk1", None) == (found["Name"], found.get("UpdatesTotal"))
    assert {"machine": 1} == adverts.counts()
