"""The file that says what a machine is for."""

import json
from pathlib import Path

import pytest

from kettle_services.worker.bootstrap_file import BootstrapError, read, remove

SAID = {
    "url": "https://pool.example",
    "token": "secret-token",
    "lease": "p-1-1",
    "deployment": "d",
    "life": 60.0,
}


def written(path: Path, *, mode: int = 0o600, **own: object) -> Path:
    path.write_text(json.dumps({**SAID, **own}))
    path.chmod(mode)
    return path


def test_it_is_read_and_does_not_stay(tmp_path: Path) -> None:
    """Removed twice is removed once."""
    file = written(tmp_path / "boot.json")
    assert "p-1-1" == read(file).lease
    remove(file)
    remove(file)
    assert not file.exists()


@pytest.mark.parametrize(
    ("own", "why"),
    [
        ({"mode": 0o640}, "open to others"),
        ({"mode": 0o604}, "open to others"),
        ({"lease": "Not-A-Label"}, r"\$\.lease"),
        ({"lives": 60.0}, "unknown field `lives`"),
        ({"life": 0.0}, r"\$\.life"),
        ({"settings": {"num_cpus": None}}, r"\$\.settings"),
    ],
)
def test_what_cannot_be_used_is_refused_without_its_secret(
    tmp_path: Path, own: dict[str, int], why: str
) -> None:
    """In one sentence that names the file."""
    file = written(tmp_path / "boot.json", **own)
    with pytest.raises(BootstrapError, match=why) as refusal:
        read(file)
    assert str(file) in str(refusal.value)
    assert "secret-token" not in str(refusal.value)


def test_one_that_is_not_there_is_said_to_be_missing(tmp_path: Path) -> None:
    """As the system says it."""
    with pytest.raises(BootstrapError, match="No such file"):
        read(tmp_path / "none")
