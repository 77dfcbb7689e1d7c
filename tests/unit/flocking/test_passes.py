"""Passes: what is in one, and how they are kept."""

from pathlib import Path

import pytest

from kettle.flocking.passes import Pass, PassError, Passes, decoded, encoded

SEED = "SUAMLK2ZNL35WSMW37E7UD4VZ7ELPKW7DHC3BWBSD2GCZ7IUQQXZIORRBU"
PASS = Pass(pool="chemistry", nats_url="nats://there:4222", visitor="ap@physics", seed=SEED)


def test_what_is_taken_in_is_found_under_its_name(tmp_path: Path) -> None:
    """For the owner alone, with the key in a file of its own; a new one takes its place."""
    passes = Passes(tmp_path)
    assert [] == passes.names()
    passes.keep("chem", decoded(encoded(PASS), "file"))
    later = Pass(pool="chemistry", nats_url="nats://moved:4222", visitor="ap@physics", seed=SEED)
    passes.keep("chem", later)
    assert (["chem"], later) == (passes.names(), passes.load("chem"))
    assert SEED == passes.key("chem").read_text().strip()
    files = list((tmp_path / "credentials" / "flock").iterdir())
    assert {0o600} == {path.stat().st_mode & 0o777 for path in files}
    assert 2 == len(files)


def test_no_pass_is_told_with_what_to_do(tmp_path: Path) -> None:
    """The sentence names the command."""
    with pytest.raises(PassError, match=r"no pass for it.*kettle flock use FILE --as chem"):
        Passes(tmp_path).load("chem")


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\xff",
        b"[]",
        b'{"pool": "p", "nats_url": "n", "visitor": "no domain", "seed": "SUA"}',
        b'{"pool": "p", "nats_url": "n", "visitor": "a@b", "seed": "../../etc/passwd"}',
        b'{"pool": "p", "nats_url": "n", "visitor": "a@b", "seed": "SUA", "more": 1}',
    ],
)
def test_what_is_no_pass_is_refused(data: bytes) -> None:
    """With the file's name."""
    with pytest.raises(PassError, match=r"^file is no pass"):
        decoded(data, "file")


@pytest.mark.parametrize("name", ["", "a/b", "../x", "a b", "x" * 65])
def test_a_name_is_no_path(tmp_path: Path, name: str) -> None:
    """It becomes the name of a file."""
    with pytest.raises(PassError, match="no name for a pool"):
        Passes(tmp_path).keep(name, PASS)


def test_a_pass_does_not_show_its_secret() -> None:
    """Not even where it is printed by mistake."""
    assert SEED not in f"{PASS!r} {PASS}"
