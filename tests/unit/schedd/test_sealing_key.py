"""The key of a queue is exchanged, and what it has sealed opens all the same."""

import time
from pathlib import Path

from kettle.jobs.sealed_attributes import AttributeSeal
from kettle_services.schedd.queue.sealing_key import seal_of
from kettle_wire.ads import Ad

DAY = 86_400.0
SECRET: Ad = {"Environment": "A=1"}


def test_a_key_is_exchanged_when_it_is_old_and_the_old_one_opens(tmp_path: Path) -> None:
    """
    At the queue, and where accounting and gateway look for keys; and nothing is sealed with the old one any
    more.
    """
    path, now = tmp_path / "schedd.seal", time.time()
    first = seal_of(path, now=now, lifetime=DAY)
    old = first.sealed(SECRET, "ada")
    key = path.read_bytes()
    seal_of(path, now=now + DAY / 2, lifetime=DAY)
    assert key == path.read_bytes()
    second = seal_of(path, now=now + 2 * DAY, lifetime=DAY)
    new = second.sealed(SECRET, "ada")
    assert key != path.read_bytes()
    assert 2 == len(list(tmp_path.glob("*.seal")))
    for reader in (second, AttributeSeal.of_directory(tmp_path)):
        assert [SECRET, SECRET] == [reader.opened(ad, "ada") for ad in (old, new)]
    assert new == AttributeSeal([key]).opened(new, "ada")


def test_a_key_without_a_lifetime_stays(tmp_path: Path) -> None:
    """Others may have a copy of its file, and of no other."""
    path = tmp_path / "schedd.seal"
    seal_of(path, now=0.0, lifetime=0.0)
    key = path.read_bytes()
    seal_of(path, now=time.time() + 10_000 * DAY, lifetime=0.0)
    assert [path] == list(tmp_path.glob("*.seal"))
    assert key == path.read_bytes()


def test_who_is_killed_while_the_key_is_exchanged_loses_none(tmp_path: Path) -> None:
    """The old one may be in both places, or in its new one alone."""
    path, now = tmp_path / "schedd.seal", time.time()
    old = seal_of(path, now=now, lifetime=DAY).sealed(SECRET, "ada")
    seal_of(path, now=now + 2 * DAY, lifetime=DAY)
    (kept,) = (file for file in tmp_path.glob("*.seal") if file != path)
    path.unlink()
    path.hardlink_to(kept)  # as it was in between
    assert SECRET == seal_of(path, now=now + 2 * DAY, lifetime=DAY).opened(old, "ada")
    path.unlink()
    assert SECRET == seal_of(path, now=now + 2 * DAY, lifetime=DAY).opened(old, "ada")
