"""Files of the web through the caches of a site, and what is recorded of each."""

import hashlib
from email.message import Message
from pathlib import Path

import pytest

from kettle.retry.backoff import steady
from kettle.transfer.data_rules import DataRule, read_rules
from kettle.transfer.plugin import Cached, Move
from kettle.transfer.plugins import http
from kettle.transfer.plugins.http import HttpError, Sources
from kettle.transfer.recording import Recording
from kettle_wire.moved_files import FileRecord

from .conftest import Web

DATA = b"0123456789" * 100


@pytest.fixture(autouse=True)
def _at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http, "BACKOFF", steady(0.001))
    for name in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.delenv(name, raising=False)


def fetched(sources: Sources, move: Move) -> FileRecord:
    """What is recorded of a file that was fetched."""
    recording = Recording(move.named)
    size, _ = sources.refresh(move, recording)
    return recording.record(size, 0.5, moved=True)


def ruled(url: str, directory: Path, text: str) -> Move:
    """A file, with the rule of the site for it."""
    (rule,) = read_rules([text])
    return Move(url, str(directory / "f"), rule=rule)


def test_a_proxy_is_asked_for_the_whole_url(web: Web, other_web: Web, tmp_path: Path) -> None:
    """It says that it had the file, the record says so, and the origin hears nothing."""
    other_web.files[web.url("f")] = DATA
    move = ruled(web.url("f"), tmp_path, f"http://*: cache={other_web.url('').rstrip('/')}")
    record = fetched(Sources(), move)

    assert DATA == (tmp_path / "f").read_bytes()
    assert [] == web.asked
    assert ("cache", f"127.0.0.1:{other_web.server_port}", 1000, "size", "same") == (
        record.source, record.server, record.bytes, record.checksum, record.verdict,
    )  # fmt: skip


def test_a_cache_by_path_is_asked_for_the_same_path(web: Web, other_web: Web, tmp_path: Path) -> None:
    """Below what its URL says."""
    other_web.files["top/a/f"] = DATA
    rule = f"http://*: cache={other_web.url('top')}, form=path"
    assert "cache" == fetched(Sources(), ruled(web.url("a/f"), tmp_path, rule)).source


def test_what_the_cache_has_not_comes_from_the_origin(web: Web, other_web: Web, tmp_path: Path) -> None:
    """With the reason, in HTCondor's word for it."""
    web.files["f"] = DATA
    move = ruled(web.url("f"), tmp_path, f"http://*: cache={other_web.url('').rstrip('/')}")
    record = fetched(Sources(), move)

    assert ("origin", DATA) == (record.source, (tmp_path / "f").read_bytes())
    assert [("cache", "Specification")] == [(each.source, each.error) for each in record.tries]


def test_a_dead_cache_is_tried_for_the_first_file_only(web: Web, tmp_path: Path) -> None:
    """Its silence costs a transfer once."""
    web.files["f"] = DATA
    move, sources = ruled(web.url("f"), tmp_path, "http://*: cache=http://127.0.0.1:1"), Sources()
    records = [fetched(sources, move) for _ in range(2)]

    assert [2, 0] == [len(record.tries) for record in records]
    assert {"Contact"} == {each.error for each in records[0].tries}
    assert ["origin", "origin"] == [record.source for record in records]


def test_without_a_fallback_there_is_no_other_source(web: Web, tmp_path: Path) -> None:
    """The origin is not asked behind the back of the site."""
    web.files["f"] = DATA
    move = ruled(web.url("f"), tmp_path, "http://*: cache=http://127.0.0.1:1, fallback=none")
    with pytest.raises(HttpError, match="the connection failed"):
        fetched(Sources(), move)
    assert [] == web.asked


def test_what_the_machine_has_is_said_to_be_its_own(web: Web, tmp_path: Path) -> None:
    """Its server was asked whether it is the same."""
    web.files["f"] = DATA
    (tmp_path / "kept").write_bytes(DATA)
    with (tmp_path / "kept").open("rb") as kept:
        sha256 = hashlib.sha256(DATA).hexdigest()
        move = Move(web.url("f"), str(tmp_path / "f"), Cached(kept.fileno(), '"f"', sha256))
        record = fetched(Sources(), move)
    assert ("machine", True, "sha256", 0) == (record.source, record.hit, record.checksum, web.sent)


@pytest.mark.parametrize(
    ("url", "word"),
    [("http://127.0.0.1:1/f", "Contact"), ("http://nowhere.invalid/f", "Resolution"), ("", "Specification")],
)
def test_why_a_file_did_not_come(web: Web, tmp_path: Path, url: str, word: str) -> None:
    """No connection, no such name, no such file."""
    recording = Recording(url or web.url("none"))
    with pytest.raises(HttpError):
        Sources().refresh(Move(url or web.url("none"), str(tmp_path / "f")), recording)
    record = recording.record(0, 0.0, moved=False)
    assert (word, "") == (record.error, record.source)


@pytest.mark.parametrize(
    ("headers", "hit"),
    [
        ({"X-Cache": "HIT from squid"}, True),
        ({"X-Cache": "MISS from squid"}, False),
        ({"Cache-Status": "site; hit; ttl=3"}, True),
        ({"Cache-Status": "site; fwd=miss"}, False),
        ({}, None),
    ],
)
def test_what_a_cache_says_of_itself(headers: dict[str, str], hit: bool | None) -> None:
    """In squid's words, or in those of RFC 9211; silence is no answer."""
    message = Message()
    for name, value in headers.items():
        message[name] = value
    assert hit is http.said_hit(message)


def test_a_rule_says_all_by_itself() -> None:
    """Of a machine's own cache, and of none, there is nothing to be asked."""
    assert "" == DataRule(pattern="*", form="machine").address("http://a/b")
