"""WebDAV as far as it is more than HTTP."""

from pathlib import Path

import pytest

from kettle.transfer.plugins import webdav
from kettle.transfer.plugins.http import HttpError

from .conftest import Web


@pytest.fixture(autouse=True)
def _no_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.delenv(name, raising=False)


def test_a_token_is_shown_where_nobody_else_reads_it(tmp_path: Path) -> None:
    """From the file or the variable that the job's environment names, and only behind TLS."""
    (tmp_path / "token").write_text("abc\n")
    environ = {"BEARER_TOKEN_FILE": str(tmp_path / "token")}

    assert {"Authorization": "Bearer abc"} == webdav.credentials("https://h/f", environ)
    assert {"Authorization": "Bearer xyz"} == webdav.credentials("https://h/f", {"BEARER_TOKEN": "xyz"})
    assert {} == webdav.credentials("http://h/f", environ)
    assert {} == webdav.credentials("https://h/f", {})


def test_missing_collections_are_made_from_the_top(web: Web, tmp_path: Path) -> None:
    """The deepest first, up to one that can be made; then down again, and the file."""
    (tmp_path / "f").write_text("text")
    web.collections = {""}

    assert 4 == webdav.send(web.url("a/b/c/f").replace("http", "dav", 1), str(tmp_path / "f"))
    assert {"", "a", "a/b", "a/b/c"} == web.collections
    assert b"text" == web.files["a/b/c/f"]
    made = [name for method, name in web.asked if method == "MKCOL"]
    assert ["a/b/c", "a/b", "a", "a/b", "a/b/c"] == made


def test_a_server_that_says_no_to_a_large_file_is_heard(web: Web, tmp_path: Path) -> None:
    """It hangs up while the file is still being sent; what it has said before is what counts."""
    text = bytes(range(256)) * (128 << 10)
    (tmp_path / "f").write_bytes(text)
    web.collections = {""}

    assert len(text) == webdav.send(web.url("a/f").replace("http", "dav", 1), str(tmp_path / "f"))
    assert text == web.files["a/f"]
    assert 2 == sum(method == "PUT" for method, _ in web.asked)


def test_a_server_that_makes_no_collection_is_told(web: Web, tmp_path: Path) -> None:
    """With the path and its answer."""
    (tmp_path / "f").touch()
    web.collections = set()
    with pytest.raises(HttpError, match="makes no collection /a/b: it answers 409"):
        webdav.send(web.url("a/b/f").replace("http", "dav", 1), str(tmp_path / "f"))


def test_a_file_is_removed_and_a_collection_is_not(web: Web) -> None:
    """A server would remove a collection with all that is in it; a file that is gone is removed already."""
    web.files |= {"a/f": b"x", "a/g": b"x"}
    for name in ("a/f", "a/f", "a/"):
        webdav.remove(web.url(name).replace("http", "dav", 1))

    assert ["a/g"] == list(web.files)
    assert [("DELETE", "/a/f")] * 2 == web.asked
