"""When an ad is sent to another pool."""

import msgspec
import pytest

from kettle_services.collector.domain.ads import Adverts
from kettle_services.collector.domain.forwarding import ForwardingQueue
from kettle_wire.ads.daemon import SubmitterAd
from kettle_wire.ads.types import Ad, Expr

encode = msgspec.msgpack.encode


def sent(outbox: ForwardingQueue, ads: dict[str, Ad], now: float) -> list[str]:
    """What is taken at a moment, and sent or taken away."""
    some = outbox.take(now, 100)
    for key in some:
        if key in ads:
            outbox.sent(key, ads[key], now)
        else:
            outbox.removed(key)
    return some


def test_what_is_watched_goes_at_once_and_the_rest_with_the_interval() -> None:
    """An ad that is new goes too."""
    outbox = ForwardingQueue(interval=100.0, watch=["State"])
    ads: dict[str, Ad] = {"Machine.a": {"State": "Idle", "LoadAvg": 1.0}}
    outbox.changed("Machine.a", {"state": "Idle", "loadavg": 1.0})
    assert ["Machine.a"] == sent(outbox, ads, 0.0)
    outbox.changed("Machine.a", {"state": "Idle", "loadavg": 2.0})
    assert [] == sent(outbox, ads, 50.0)
    assert 50.0 == outbox.idle(50.0)
    ads["Machine.a"] = {"State": "Busy"}
    outbox.changed("Machine.a", {"state": "Busy"})
    assert 0.0 == outbox.idle(50.0)
    assert ["Machine.a"] == sent(outbox, ads, 50.0)
    assert [] == sent(outbox, ads, 100.0), "it was sent meanwhile"
    assert ["Machine.a"] == sent(outbox, ads, 150.0)
    assert ["Machine.a"] == sent(outbox, ads, 250.0), "again and again"


def test_without_anything_watched_each_update_goes() -> None:
    """As HTCondor does without its filter."""
    outbox = ForwardingQueue(interval=100.0, watch=[])
    ads: dict[str, Ad] = {"Machine.a": {"State": "Idle"}}
    for now in (0.0, 1.0, 2.0):
        outbox.changed("Machine.a", {"state": "Idle"})
        assert ["Machine.a"] == sent(outbox, ads, now)


def test_what_was_never_sent_need_not_be_taken_away() -> None:
    """What was is, once; then nobody thinks of it any more."""
    outbox = ForwardingQueue(interval=100.0, watch=["State"])
    outbox.gone("Machine.b")
    assert [] == sent(outbox, {}, 0.0)
    outbox.changed("Machine.a", {})
    assert ["Machine.a"] == sent(outbox, {"Machine.a": {}}, 0.0)
    outbox.gone("Machine.a")
    assert ["Machine.a"] == sent(outbox, {}, 1.0)
    assert [] == sent(outbox, {}, 1000.0)


def test_after_a_reconnection_everything_goes_again() -> None:
    """And what went meanwhile is taken away; however often it is asked for, nothing is there twice."""
    outbox = ForwardingQueue(interval=100.0, watch=["State"])
    ads: dict[str, Ad] = {"Machine.a": {}, "Machine.b": {}}
    for key in ads:
        outbox.changed(key, {})
    assert ["Machine.a", "Machine.b"] == sent(outbox, ads, 0.0)
    del ads["Machine.a"]
    outbox.gone("Machine.a")
    assert ["Machine.a"] == outbox.take(0.5, 100), "it was taken out, and the connection broke"
    ads["Machine.c"] = {}
    for _ in range(2):
        outbox.again(ads)
    assert ["Machine.a", "Machine.b", "Machine.c"] == sorted(sent(outbox, ads, 1.0))
    assert [] == sent(outbox, ads, 2.0)


def test_an_ad_that_lives_short_goes_oftener() -> None:
    """It would vanish there before the interval is over."""
    outbox = ForwardingQueue(interval=100.0, watch=["State"])
    ads: dict[str, Ad] = {"Machine.a": {"ClassAdLifetime": 30}}
    outbox.changed("Machine.a", {"classadlifetime": 30})
    assert ["Machine.a"] == sent(outbox, ads, 0.0)
    assert ["Machine.a"] == sent(outbox, ads, 10.0)


def test_an_ad_that_comes_and_goes_is_kept_once() -> None:
    """However often: its interval counts from the last time."""
    outbox = ForwardingQueue(interval=100.0, watch=["State"])
    for now in range(50):
        outbox.changed("Machine.a", {})
        assert ["Machine.a"] == sent(outbox, {"Machine.a": {}}, now)
        outbox.gone("Machine.a")
        assert ["Machine.a"] == sent(outbox, {}, now)
    outbox.changed("Machine.a", {})
    assert ["Machine.a"] == sent(outbox, {"Machine.a": {}}, 50.0)
    assert [] == sent(outbox, {"Machine.a": {}}, 149.0)
    assert ["Machine.a"] == sent(outbox, {"Machine.a": {}}, 150.0)
    assert [] == sent(outbox, {"Machine.a": {}}, 150.0)


@pytest.mark.parametrize(
    ("key", "value"),
    [
        *(
            ("Machine.a", encode({"Name": "a", "Seen": each}))
            for each in (1, 1.5, True, "x", Expr("Cpus > 1"))
        ),
        ("Submitter.a", encode(SubmitterAd(name="a", schedd="ap", idle=1, running=0, held=0, requests=[]))),
    ],
)
def test_an_ad_is_the_same_when_it_comes_and_when_it_is_sent(key: str, value: bytes) -> None:
    """Whatever its attributes are: the same again is not sent."""
    adverts, outbox = Adverts(lifetime=900.0), ForwardingQueue(interval=100.0, watch=["Seen", "IdleJobs"])
    outbox.changed(key, adverts.put(key, value, 1.0))
    ad = adverts.ad(key)
    assert ad is not None
    assert [key] == sent(outbox, {key: ad}, 0.0)
    outbox.changed(key, adverts.put(key, value, 2.0))
    assert [] == sent(outbox, {key: ad}, 1.0)
