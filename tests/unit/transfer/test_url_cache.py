"""Files that were fetched by URL and are kept for the next job."""

import os
from pathlib import Path

import pytest

from kettle.transfer import url_cache
from kettle.transfer.plugin import Move, Order, Plugin
from kettle.transfer.plugin_runs import through_cache
from kettle.transfer.plugins import own_plugins
from kettle.transfer.url_cache import UrlCache, cacheable

from .conftest import Web

DATA = os.urandom(300_000)
OURS = own_plugins(("file", "http", "https"))


def fetched(tmp_path: Path, url: str, *, owner: str = "alice", limit: int = 1 << 20) -> bytes:
    """What a job of somebody gets."""
    scratch = tmp_path / "scratch"
    scratch.mkdir(exist_ok=True)
    move = Move(url, str(scratch / "f"))
    order = Order(
        upload=False,
        moves=[move],
        plugins=OURS,
        lifetime=600.0,
        scratch=str(scratch),
        environment={"no_proxy": "*"},
    )
    cache = UrlCache(tmp_path / "cache", owner=owner, limit=limit)
    moved = through_cache(order, [move], cache, lambda: None)
    assert moved.ending is None, moved.ending
    return (scratch / "f").read_bytes()


def kept(tmp_path: Path) -> list[Path]:
    return [path for path in (tmp_path / "cache").iterdir() if path.suffix != ".lock"]


def test_what_is_the_same_moves_once(web: Web, tmp_path: Path) -> None:
    """The server is asked each time, and sends it the first time."""
    web.files["f"] = DATA
    found = [fetched(tmp_path, web.url("f")) for _ in range(3)]

    assert [DATA] * 3 == found
    assert len(DATA) == web.sent


def test_what_has_changed_is_fetched(web: Web, tmp_path: Path) -> None:
    """And takes the place of what was there."""
    web.files["f"] = DATA
    first = fetched(tmp_path, web.url("f"))
    web.files["f"], web.tags["f"] = b"new", '"2"'
    second = fetched(tmp_path, web.url("f"))

    assert (DATA, b"new") == (first, second)
    assert 1 == len(kept(tmp_path))


def test_spoilt_bytes_are_not_used(web: Web, tmp_path: Path) -> None:
    """However the file came to be another, it is fetched again."""
    web.files["f"] = DATA
    fetched(tmp_path, web.url("f"))
    (path,) = kept(tmp_path)
    with path.open("r+b") as file:
        file.write(b"spoilt")

    assert DATA == fetched(tmp_path, web.url("f"))
    assert DATA == fetched(tmp_path, web.url("f"))
    assert 2 * len(DATA) == web.sent


def test_everybody_has_his_own(web: Web, tmp_path: Path) -> None:
    """What one person's job fetched, perhaps by way of a proxy of its own, no other person's job gets."""
    web.files["f"] = DATA
    for owner in ("alice", "bob"):
        fetched(tmp_path, web.url("f"), owner=owner)

    assert 2 * len(DATA) == web.sent


@pytest.mark.parametrize("tag", ["", 'W/"weak"', '"' + "x" * 100 + '"'])
def test_what_the_server_does_not_name_is_not_kept(web: Web, tmp_path: Path, tag: str) -> None:
    """Without a strong name of the file's state nobody could say that it is the same."""
    web.files["f"], web.tags["f"] = DATA, tag
    fetched(tmp_path, web.url("f"))

    assert [] == kept(tmp_path)


def test_a_date_of_change_is_a_name_when_it_is_old_enough(web: Web, tmp_path: Path) -> None:
    """A file that changed just now may do so again within the same second."""
    web.tags |= {"old": "", "new": ""}
    web.files |= {"old": DATA, "new": DATA}
    web.ages |= {"old": 3600.0, "new": 1.0}
    for name in ("old", "new"):
        for _ in range(2):
            fetched(tmp_path, web.url(name))

    assert (1, 3 * len(DATA)) == (len(kept(tmp_path)), web.sent)


def test_the_least_recently_used_goes(web: Web, tmp_path: Path) -> None:
    """When there is no room; what is larger than all room is not kept."""
    for name in ("a", "b", "c"):
        web.files[name] = DATA
        fetched(tmp_path, web.url(name), limit=2 * len(DATA))
        for number, path in enumerate(sorted(kept(tmp_path), key=lambda path: path.stat().st_mtime)):
            os.utime(path, (number, number))
    before = web.sent
    fetched(tmp_path, web.url("c"), limit=2 * len(DATA))
    fetched(tmp_path, web.url("b"), limit=2 * len(DATA))
    assert before == web.sent
    fetched(tmp_path, web.url("a"), limit=len(DATA) // 2)

    assert before + len(DATA) == web.sent


def test_secrets_are_no_keys() -> None:
    """
    A URL with a password or a query is fetched for its job alone, and so is what another plugin fetches.
    """
    urls = [
        "http://h/f",
        "https://h/f",
        "http://me:pw@h/f",
        "https://h/f?signature=1",
        "file:///f",
        "x://h/f",
    ]
    moves = [Move(url, "/s/f") for url in urls]
    site = Plugin(path="/site", methods=("https", "x"))

    assert urls[:2] == [move.url for move in cacheable(moves, OURS)]
    assert urls[:1] == [move.url for move in cacheable(moves, [site, *OURS])]


def test_nobody_waits_long_for_a_slow_server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """
    Given a fetch that goes on and on, then others of that file go without the cache, and those of all others with it.
    """
    urls = [f"http://h/{n}" for n in range(300)]
    alice, bob = (UrlCache(tmp_path, owner=owner, limit=1 << 20) for owner in ("alice", "bob"))
    monkeypatch.setattr(url_cache, "PATIENCE_S", 0.0)
    with (
        alice.turn(urls[:1]) as slow,
        bob.turn(urls) as others,
        alice.turn(urls[1:]) as rest,
        alice.turn(urls[:1]) as same,
    ):
        assert (True, True, True, False) == (slow, others, rest, same)
    with alice.turn(urls) as later:
        assert later
    assert [] == list(tmp_path.iterdir())


def test_who_has_no_turn_has_the_file_all_the_same(
    web: Web, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is fetched, and not kept."""
    monkeypatch.setattr(url_cache, "PATIENCE_S", 0.0)
    web.files["f"] = DATA
    (tmp_path / "cache").mkdir()
    with UrlCache(tmp_path / "cache", owner="alice", limit=1 << 20).turn([web.url("f")]):
        found = fetched(tmp_path, web.url("f"))

    assert found == DATA
    assert [] == kept(tmp_path)
