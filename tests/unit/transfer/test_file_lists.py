"""What the lists of a job ad mean."""

import pytest

from kettle.transfer.file_lists import (
    ManifestError,
    is_inside,
    is_url,
    items,
    job_plugins,
    leaves,
    name_of_url,
    placed,
    remaps,
    scheme_of,
    shown,
    without_secrets,
)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", []),
        (" , ,", []),
        ("a,b", ["a", "b"]),
        (" a , b/ ,", ["a", "b/"]),
        ("http://x/f?a=1, a b", ["http://x/f?a=1", "a b"]),
    ],
)
def test_a_list(text: str, expected: list[str]) -> None:
    """Blanks around items and empty items do not count."""
    assert expected == items(text)


@pytest.mark.parametrize(
    ("item", "scheme", "name"),
    [
        ("http://x.org/a/f.dat", "http", "f.dat"),
        ("HTTPS://x.org/f?sig=1#top", "https", "f"),
        ("osdf:///a/b", "osdf", "b"),
        ("s3+x://bucket/k", "s3+x", "k"),
    ],
)
def test_a_url(item: str, scheme: str, name: str) -> None:
    """Its method is compared without regard to case; in the sandbox it has the last part of its path."""
    assert is_url(item)
    assert (scheme, name) == (scheme_of(item), name_of_url(item))


@pytest.mark.parametrize("item", ["a", "/a/b", "a:b", "://x", "1x://y", "a//b"])
def test_no_url(item: str) -> None:
    """What does not begin with a method is a path."""
    assert not is_url(item)
    assert "" == scheme_of(item)


@pytest.mark.parametrize("url", ["http://x.org/", "http://x.org/a/..", "http:///", "plain"])
def test_a_url_without_a_file(url: str) -> None:
    """One that ends with no name cannot be placed."""
    with pytest.raises(ManifestError, match="name of a file"):
        name_of_url(url)


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("https://me:secret@x.org/f?X-Amz-Signature=abc", "https://x.org/f"),
        ("https://x.org/a@b#part", "https://x.org/a@b"),
        ("a/b", "a/b"),
    ],
)
def test_what_is_shown_of_a_url(url: str, expected: str) -> None:
    """Neither passwords nor signatures."""
    assert expected == shown(url)


@pytest.mark.parametrize(
    ("item", "flat", "kept"),
    [
        ("a", "a", "a"),
        ("a/b/c", "c", "a/b/c"),
        ("./a/b", "b", "a/b"),
        ("a/d/", "d", "a/d"),
        ("/x/y/z", "z", "z"),
        ("../z", "z", "z"),
    ],
)
def test_where_an_item_goes(item: str, flat: str, kept: str) -> None:
    """Flat by base name, or, if relative paths are preserved, under its path as far as it has one."""
    assert (flat, kept) == (placed(item, preserve=False), placed(item, preserve=True))


@pytest.mark.parametrize("name", ["a", "a/b", "..a", "a..b/c"])
def test_names_inside(name: str) -> None:
    """A relative name without dots for directories stays inside."""
    assert is_inside(name)
    assert not leaves(name)


@pytest.mark.parametrize("name", ["/a", "..", "../a", "a/../../b", "a\0b"])
def test_names_outside(name: str) -> None:
    """An absolute name leads out, and so do dots."""
    assert not is_inside(name)
    assert leaves(name)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", {}),
        (" ; ", {}),
        ("a=b", {"a": "b"}),
        (" a = b ; c = /x/y ;", {"a": "b", "c": "/x/y"}),
        (r"a\;b = c\;d", {"a;b": "c;d"}),
        (r"a\=b = c", {"a=b": "c"}),
        (r"a = b\=c\d", {"a": r"b\=c\d"}),
        ("a = https://x.org/f?k=v", {"a": "https://x.org/f?k=v"}),
        ("d/ = e", {"d": "e"}),
        ("a=b;a=c", {"a": "b"}),
        (r"a\b = c", {r"a\b": "c"}),
    ],
)
def test_remaps(text: str, expected: dict[str, str]) -> None:
    """Pairs of name and destination, with backslashes before what would separate."""
    assert expected == remaps(text).targets


@pytest.mark.parametrize("text", ["a", "a=b;c", "=b", "a=", r"a\=b", r"a\\=b"])
def test_remaps_that_are_none(text: str) -> None:
    """Half a pair is refused, and it is quoted."""
    with pytest.raises(ManifestError, match=r"no =|lacks the"):
        remaps(text)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("a", "x"),
        ("b", None),
        ("d/f", "/data/f"),
        ("d/e/f", "/data/e/f"),
        ("d/deep/f", "s3://bucket/deep/f"),
        ("a/b", "x/b"),
    ],
)
def test_a_remap_of_a_directory_counts_for_what_is_in_it(name: str, expected: str | None) -> None:
    """The longest directory that is named wins."""
    assert expected == remaps("a=x; d=/data; d/deep=s3://bucket/deep").find(name)


def test_plugins_of_a_job() -> None:
    """Several methods may have one program; the methods have no case."""
    assert {"foo": "/bin/x", "bar": "y", "baz": "y"} == job_plugins("foo=/bin/x; Bar, baz = y;")
    for text in ("foo", "=x", "foo="):
        with pytest.raises(ManifestError, match="is no plugin"):
            job_plugins(text)


@pytest.mark.parametrize(
    ("said", "left"),
    [
        ("open root://h:1094//p?authz=hush&x=1 failed: no", "open root://h:1094//p failed: no"),
        ("/p?xrd.wantprot=unix&authz=hush: no", "/p no"),
        ("opaque authz=hush, 3 tries", "opaque  3 tries"),
        ("https://me:hush@h/f says 403", "https://h/f says 403"),
        ("no such file: https://h/f", "no such file: https://h/f"),
    ],
)
def test_what_programs_say_has_no_secrets(said: str, left: str) -> None:
    """However they spell the address that they were given."""
    assert left == without_secrets(said)
