"""Our own plugins: by their command line, and against a server that misbehaves."""

import os
import urllib.request
from http.client import HTTPMessage
from io import BytesIO
from pathlib import Path

import pytest

from kettle.retry.backoff import steady
from kettle.transfer.plugin import Move
from kettle.transfer.plugin_protocol import answer, capabilities, question
from kettle.transfer.plugins import command_line, file, http, own_plugins
from kettle.transfer.plugins.http import HttpError

from .conftest import Web

DATA = os.urandom(3_000_000)


@pytest.fixture(autouse=True)
def _at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http, "BACKOFF", steady(0.001))
    for name in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.delenv(name, raising=False)


def test_ours_describe_themselves_as_others_do(capsys: pytest.CaptureFixture[str]) -> None:
    """What -classad prints is read back as the plugin that the machine is told of."""
    assert 0 == http.main(["-classad"])
    said = capabilities("x", capsys.readouterr().out)

    assert (("http", "https"), True) == (said.methods, said.several)
    assert [("http", "https"), ("file",)] == [p.methods for p in own_plugins(("http", "https", "file"))]


def test_a_plugin_moves_and_answers_for_each_file(tmp_path: Path) -> None:
    """Asked in ads, it answers in ads; the first failure is its last answer, and the exit code says so."""
    (tmp_path / "a b").write_text("text")
    moves = [
        Move(f"file://{tmp_path}/a%20b", str(tmp_path / "copy")),
        Move(f"file://{tmp_path}/none", str(tmp_path / "c2")),
    ]
    ask, out = tmp_path / "ask", tmp_path / "answer"
    ask.write_text(question(moves))
    out.touch()

    assert 1 == file.main(["-infile", str(ask), "-outfile", str(out)])
    first, second = answer(out.read_text())
    assert (True, 4, "text") == (first.success, first.total, (tmp_path / "copy").read_text())
    assert (False, moves[1].url) == (second.success, second.url)
    assert "No such file" in second.error


def test_a_wrong_command_line_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    """Neither half a command line nor a question that is none is taken for work."""
    assert command_line.USAGE == http.main(["-infile", "x"])
    assert "usage:" in capsys.readouterr().err
    assert command_line.USAGE == http.main(["-infile", "/nonexistent", "-outfile", "y"])
    assert "/nonexistent" in capsys.readouterr().err


def test_files_of_the_worker_only(tmp_path: Path) -> None:
    """A URL of another machine and what is no regular file are refused with a sentence."""
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(ValueError, match="another machine"):
        file.fetch("file://elsewhere/x", str(tmp_path / "y"))
    with pytest.raises(ValueError, match="not a regular file"):
        file.fetch(f"file://{tmp_path}/pipe", str(tmp_path / "y"))


def test_files_go_out_of_the_sandbox_too(tmp_path: Path) -> None:
    """Missing directories are made."""
    (tmp_path / "x").write_text("result")
    assert 6 == file.send(f"file://{tmp_path}/new/dir/x", str(tmp_path / "x"))
    assert "result" == (tmp_path / "new/dir/x").read_text()


def test_a_file_is_fetched(web: Web, tmp_path: Path) -> None:
    """All bytes of it, in one request."""
    web.files["f"] = DATA
    assert len(DATA) == http.fetch(web.url("f"), str(tmp_path / "f"))
    assert DATA == (tmp_path / "f").read_bytes()
    assert [("GET", "")] == web.asked


def test_a_broken_fetch_goes_on_where_it_was(web: Web, tmp_path: Path) -> None:
    """Each further request asks for the rest, and nothing is fetched twice."""
    web.files["f"], web.breaks = DATA, [1_000_000, 500_000]
    http.fetch(web.url("f"), str(tmp_path / "f"))

    assert DATA == (tmp_path / "f").read_bytes()
    assert ["", "bytes=1000000-", "bytes=1500000-"] == [wanted for _, wanted in web.asked]


@pytest.mark.parametrize("tag", ["", 'W/"weak"'])
def test_without_proof_that_it_is_the_same_file_it_begins_anew(web: Web, tmp_path: Path, tag: str) -> None:
    """A server that does not name the file's state strongly gets no requests for a rest."""
    web.files["f"], web.tags["f"], web.breaks = DATA, tag, [1_000_000]
    http.fetch(web.url("f"), str(tmp_path / "f"))

    assert DATA == (tmp_path / "f").read_bytes()
    assert ["", ""] == [wanted for _, wanted in web.asked]


def test_a_file_that_changed_meanwhile_begins_anew(web: Web, tmp_path: Path) -> None:
    """Halves of two files are never put together."""
    sink = (tmp_path / "f").open("wb")
    web.files["f"], web.breaks = DATA, [1_000_000]
    with sink:
        download = http.Download(web.url("f"), sink)
        with pytest.raises(http.BrokenError):
            download.go_on()
        web.files["f"], web.tags["f"] = b"new" * 10, '"new"'
        download.go_on()

    assert b"new" * 10 == (tmp_path / "f").read_bytes()


@pytest.mark.parametrize(
    ("tags", "ages"),
    [
        (('"one"', '"two"'), (0, 0)),
        (('"one"', 'W/"one"'), (0, 0)),
        (("", ""), (7200, 3600)),
        (('W/"one"', 'W/"two"'), (7200, 7200)),
        (('"one"', ""), (7200, 3600)),
        (('"one"', ""), (0, 3600)),
        (("", '"two"'), (7200, 7200)),
    ],
)
def test_a_rest_of_another_state_is_not_put_to_the_beginning(
    web: Web, tmp_path: Path, tags: tuple[str, str], ages: tuple[float, float]
) -> None:
    """
    Given a server that takes no notice of If-Range, when the file has changed to one of the same size, then its rest is
    refused by the name of its state, and the file is fetched from its beginning.
    """
    web.ignores_if_range = True

    def becomes(data: bytes, state: int) -> None:
        web.files["f"], web.tags["f"] = data, tags[state]
        web.ages = {"f": ages[state]} if ages[state] else {}

    with (tmp_path / "f").open("wb") as sink:
        download = http.Download(web.url("f"), sink)
        becomes(b"a" * 100, 0)
        web.breaks = [40]
        with pytest.raises(http.BrokenError, match="ended before the file did"):
            download.go_on()
        becomes(b"b" * 100, 1)
        with pytest.raises(http.BrokenError, match="from byte 40 is of another state of the file"):
            download.go_on()
        download.go_on()

    assert b"b" * 100 == (tmp_path / "f").read_bytes()
    assert ["", "bytes=40-", ""] == [wanted for _, wanted in web.asked]


def test_a_rest_need_not_say_again_which_state_it_is_of(web: Web, tmp_path: Path) -> None:
    """Who was asked for the rest of one state has answered with that."""
    web.files["f"], web.breaks, web.silent_parts = DATA, [1_000_000, 500_000], True
    http.fetch(web.url("f"), str(tmp_path / "f"))

    assert DATA == (tmp_path / "f").read_bytes()
    assert ["", "bytes=1000000-", "bytes=1500000-"] == [wanted for _, wanted in web.asked]


@pytest.mark.parametrize(("age", "wanted"), [(1, ""), (3600, "bytes=1000000-")])
def test_a_date_names_a_state_when_it_is_past(web: Web, tmp_path: Path, age: int, wanted: str) -> None:
    """A file that has just changed may change again within the same second: its rest is not asked for."""
    web.files["f"], web.tags["f"], web.ages["f"], web.breaks = DATA, "", age, [1_000_000]
    http.fetch(web.url("f"), str(tmp_path / "f"))

    assert DATA == (tmp_path / "f").read_bytes()
    assert ["", wanted] == [each for _, each in web.asked]


def test_a_busy_server_is_asked_again(web: Web, tmp_path: Path) -> None:
    """503 and the like pass; a server that never gets better is given up with its words."""
    web.files["f"], web.statuses = b"x", [503, 429]
    assert 1 == http.fetch(web.url("f"), str(tmp_path / "f"))
    web.statuses = [503] * http.TRIES
    with pytest.raises(HttpError, match=r"503 .* after 6 tries"):
        http.fetch(web.url("f"), str(tmp_path / "f"))


@pytest.mark.parametrize(("name", "why"), [("none", "404"), ("none?key=secret", "404")])
def test_what_is_not_there_is_told_at_once(web: Web, tmp_path: Path, name: str, why: str) -> None:
    """One request, and the server's answer."""
    with pytest.raises(HttpError, match=why):
        http.fetch(web.url(name), str(tmp_path / "f"))
    assert 1 == len(web.asked)


def test_nobody_listens(tmp_path: Path) -> None:
    """A server that cannot be reached is said to be so."""
    with pytest.raises(HttpError, match="connection failed: Connection refused"):
        http.fetch("http://127.0.0.1:1/f", str(tmp_path / "f"))


def test_a_file_is_sent(web: Web, tmp_path: Path) -> None:
    """As the body of a PUT, again if the server was busy; a refusal is told."""
    (tmp_path / "f").write_bytes(DATA)
    web.statuses = [503]
    assert len(DATA) == http.send(web.url("up"), str(tmp_path / "f"))
    assert DATA == web.files["up"]
    web.statuses = [403]
    with pytest.raises(HttpError, match="403"):
        http.send(web.url("up"), str(tmp_path / "f"))


def test_a_part_of_the_rest_is_not_the_rest(web: Web, tmp_path: Path) -> None:
    """
    Given a server that answers with less than was asked for, as it may, when that has come, then the next part is asked for.
    """
    web.files["f"], web.breaks, web.portion = DATA, [1_000_000], 900_000
    assert len(DATA) == http.fetch(web.url("f"), str(tmp_path / "f"))

    assert DATA == (tmp_path / "f").read_bytes()
    wanted = ["", "bytes=1000000-", "bytes=1900000-", "bytes=2800000-"]
    assert wanted == [each for _, each in web.asked]


TOKEN = {"Authorization": "Bearer hush"}


def test_a_token_stays_with_its_server(web: Web, other_web: Web, tmp_path: Path) -> None:
    """
    A server to which another one redirects us, on another host, port or without TLS, does not get the token of the
    first one.
    """
    other_web.files["f"] = b"text"
    web.elsewhere = {"there": web.url("away"), "away": other_web.url("f")}

    assert 4 == http.fetch(web.url("there"), str(tmp_path / "f"), TOKEN)
    assert (["Bearer hush", "Bearer hush"], [""]) == (web.shown, other_web.shown)


@pytest.mark.parametrize(
    ("onward", "kept"),
    [
        ("https://h/b", True),
        ("https://h:443/b", True),
        ("http://h/b", False),
        ("https://h:8443/b", False),
        ("https://h.evil/b", False),
    ],
)
def test_a_token_goes_to_no_other_scheme(onward: str, kept: bool) -> None:
    """A host without TLS is another server."""
    asked = urllib.request.Request("https://h/a", headers=TOKEN)
    again = http.Redirects().redirect_request(asked, BytesIO(), 302, "Found", HTTPMessage(), onward)

    assert again is not None
    assert kept == again.has_header("Authorization")
