"""Secrets that are in files of their own."""

from pathlib import Path

import pytest

from kettle.runtime import Secret, Settings, SettingsError


class SealedSettings(Settings, frozen=True, kw_only=True, forbid_unknown_fields=True):
    motto: str = ""
    capability: Secret = ""


def load(**environ: str) -> SealedSettings:
    return SealedSettings.load("schedd", environ={"HOME": "/nonexistent", **environ})


def test_a_secret_is_read_from_the_file_that_is_named(tmp_path: Path) -> None:
    """Neither the environment nor a file of settings has it, and white space at its ends does not count."""
    secret, settings = tmp_path / "secret", tmp_path / "kettle.toml"
    secret.write_text("postgresql://a:b@c/d\n")
    settings.write_text(f'[schedd]\ndatabase_url = "file:{secret}"\n')

    assert "postgresql://a:b@c/d" == load(KETTLE_DATABASE_URL=f"file:{secret}").database_url
    assert "postgresql://a:b@c/d" == load(KETTLE_CONFIG=str(settings)).database_url


def test_what_is_no_secret_is_what_it_says(tmp_path: Path) -> None:
    """A setting of another kind may begin so, and is not looked up."""
    assert f"file:{tmp_path}" == load(KETTLE_SCHEDD_MOTTO=f"file:{tmp_path}").motto


def test_a_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    """The refusal says which variable names it, and why it cannot be read."""
    with pytest.raises(SettingsError) as refusal:
        load(KETTLE_SCHEDD_CAPABILITY=f"file:{tmp_path / 'none'}")
    assert f"KETTLE_SCHEDD_CAPABILITY: {tmp_path / 'none'} cannot be read: No such file" in str(refusal.value)
    (tmp_path / "bytes").write_bytes(b"\xff\xfe")
    with pytest.raises(SettingsError) as refusal:
        load(KETTLE_SCHEDD_CAPABILITY=f"file:{tmp_path / 'bytes'}")
    assert "KETTLE_SCHEDD_CAPABILITY: what is in this file is no text" in str(refusal.value)
