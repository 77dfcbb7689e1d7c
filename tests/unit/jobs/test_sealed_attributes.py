"""Environments of jobs, sealed in what is recorded."""

import os
from pathlib import Path

import pytest

from kettle.auth.private_files import key_file
from kettle.jobs.sealed_attributes import SUFFIX, AttributeSeal, is_sealed, left_sealed
from kettle_wire.ads import Ad, Expr, Scalar

SEAL = AttributeSeal([bytes(32)])


@pytest.mark.parametrize(
    "value", ["A=canary B='two words'", Expr('strcat("A=", "canary")'), "kettle-sealed-1:x:y"]
)
def test_what_is_sealed_comes_back_for_its_owner_alone(value: Scalar) -> None:
    """
    Also an expression, and what looks as if it were sealed; in a job of somebody else, or with another key, it stays
    closed.
    """
    ad: Ad = {"Cmd": "/bin/true", "environment": value, "Env": "B=canary"}
    sealed = SEAL.sealed(ad, "ada")
    assert "canary" not in str(sealed)
    assert (["Cmd", "Environment", "Env"], True) == (list(sealed), is_sealed(sealed["Environment"]))
    assert {"Cmd": "/bin/true", "Environment": value, "Env": "B=canary"} == SEAL.opened(sealed, "ada")
    for stranger in (SEAL.opened(sealed, "eve"), AttributeSeal([b"\1" * 32]).opened(sealed, "ada")):
        assert left_sealed(stranger)
    twice = SEAL.sealed({"Environment": sealed["Environment"]}, "eve")
    assert sealed["Environment"] == SEAL.opened(twice, "eve")["Environment"]
    assert SEAL.sealed(ad, "ada")["Environment"] != sealed["Environment"]


def test_a_job_without_an_environment_is_left_as_it_is() -> None:
    """Nothing is copied and nothing enciphered; a text of an older record is taken as it is."""
    ad: Ad = {"Cmd": "/bin/true", "Environment": ""}
    assert SEAL.sealed(ad, "ada") is ad
    old: Ad = {"Environment": "A=1"}
    assert SEAL.opened(old, "ada") is old
    assert not left_sealed(old)


def test_jobs_with_environments_of_their_own() -> None:
    """Equal ones of a submission stay equal, so that they take no more room than before."""
    columns, rows = SEAL.sealed_table(
        ["N", "environment"], [[1, "A=canary"], [2, "A=canary"], [3, ""]], "ada"
    )
    assert ["N", "Environment"] == columns
    assert (rows[0][1], [1, 2, 3], "") == (rows[1][1], [row[0] for row in rows], rows[2][1])
    assert "A=canary" == SEAL.opened({"Environment": rows[0][1]}, "ada")["Environment"]
    plain: list[list[Scalar]] = [[1]]
    assert (["N"], plain) == SEAL.sealed_table(["N"], plain, "ada")


def test_who_only_reads_finds_keys_that_are_made_later(tmp_path: Path) -> None:
    """
    The history is open before the first queue of a new pool has its key; the key is nobody else's to read.
    """
    reader = AttributeSeal.of_directory(tmp_path)
    path = tmp_path / f"schedd{SUFFIX}"
    sealed = AttributeSeal([key_file(path)]).sealed({"Environment": "A=canary"}, "ada")
    assert {"Environment": "A=canary"} == reader.opened(sealed, "ada")
    assert (0o600, 32) == (path.stat().st_mode & 0o777, path.stat().st_size)
    assert {"Environment": "A=canary"} == AttributeSeal([key_file(path)]).opened(sealed, "ada")


def test_a_key_that_cannot_be_read_closes_no_other(tmp_path: Path) -> None:
    """
    A directory in the place of a key is passed over, and a directory of keys that has not changed is not read again.
    """
    (tmp_path / f"a{SUFFIX}").mkdir()
    key = key_file(tmp_path / f"b{SUFFIX}")
    sealed = AttributeSeal([key]).sealed({"Environment": "A=canary"}, "ada")
    strange = AttributeSeal([bytes(32)]).sealed({"Environment": "A=1"}, "ada")
    os.utime(tmp_path, (1, 1))
    reader = AttributeSeal.of_directory(tmp_path)
    assert {"Environment": "A=canary"} == reader.opened(sealed, "ada")
    (tmp_path / f"c{SUFFIX}").write_bytes(bytes(32))
    os.utime(tmp_path, (1, 1))
    assert left_sealed(reader.opened(strange, "ada"))
    os.utime(tmp_path, (2, 2))
    assert {"Environment": "A=1"} == reader.opened(strange, "ada")
