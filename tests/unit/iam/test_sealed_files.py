"""Stored credentials on the disk, and the exchange of their key."""

from pathlib import Path

import pytest

from kettle.runtime import SettingsError
from kettle_services.iam.sealed_files import SealedError, SealedFiles


def test_the_key_is_exchanged_with_all_that_it_has_sealed(tmp_path: Path) -> None:
    """
    Not before its time; the old key opens nothing afterwards, and a file that cannot be read is left as it is.
    """
    files = SealedFiles(tmp_path, now=0.0)
    files.put("ada", "box.", "canary-1")
    files.put("ada.b/c", "box.mine", "canary-2")
    (damaged := tmp_path / "ada" / "old..sealed").write_text("{}")
    before = (tmp_path / "keys.json").read_bytes()
    assert not files.rotate(now=9.0, lifetime=10.0)
    assert files.rotate(now=10.0, lifetime=10.0)
    after = SealedFiles(tmp_path, now=11.0)
    assert ("canary-1", "canary-2") == (after.get("ada", "box."), after.get("ada.b/c", "box.mine"))
    assert "{}" == damaged.read_text()
    assert before != (tmp_path / "keys.json").read_bytes()
    (tmp_path / "keys.json").write_bytes(before)
    with pytest.raises(SealedError, match=r"box\. of ada cannot be read"):
        SealedFiles(tmp_path, now=12.0).get("ada", "box.")


@pytest.mark.parametrize("text", ["[{", "[]"])
def test_a_damaged_file_of_keys_is_told(tmp_path: Path, text: str) -> None:
    """New ones are not made in its place, for they would make what is stored worthless."""
    (tmp_path / "keys.json").write_text(text)
    with pytest.raises(SettingsError, match="restore it"):
        SealedFiles(tmp_path, now=0.0)
