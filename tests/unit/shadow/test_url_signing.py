"""Keys of jobs' owners: read on the submit side, and only there."""

from pathlib import Path

import pytest

from kettle_services.shadow.file_transfer.url_signing import Signer
from kettle_services.shadow.files.access import FileAccess
from kettle_wire.ads import Ad


def job(directory: Path, **other: str) -> Ad:
    (directory / "id").write_text("me\n")
    (directory / "secret").write_text("hush\n")
    return {
        "Iwd": str(directory),
        "EC2AccessKeyId": "id",
        "EC2SecretAccessKey": str(directory / "secret"),
        "TransferInput": "s3://b/in",
        "S3Endpoint": "http://h:1",
        **other,
    }


@pytest.fixture
def signer(tmp_path: Path) -> Signer:
    (tmp_path / "home").mkdir()
    return Signer(lifetime=60)


def test_an_address_is_signed(signer: Signer, tmp_path: Path) -> None:
    """For what the job reads, with its key; the key is not in it."""
    said = signer.sign(job(tmp_path), ["s3://b/in"], FileAccess(tmp_path / "home"), upload=False)

    assert ("", 1) == (said.reason, len(said.urls))
    assert said.urls[0].startswith("http://h:1/b/in?X-Amz-Algorithm=AWS4-HMAC-SHA256&X-Amz-Credential=me%2F")
    assert "hush" not in said.urls[0]


@pytest.mark.parametrize(
    ("other", "url", "words", "number"),
    [
        ({}, "s3://b/other", "does not say that it reads s3://b/other", 0),
        ({"EC2AccessKeyId": "absent"}, "s3://b/in", "absent cannot be read: No such file", 2),
        ({"EC2AccessKeyId": ""}, "s3://b/in", "has no EC2AccessKeyId", 0),
        ({"EC2AccessKeyId": "home/own"}, "s3://b/in", "the pool's own directory", 13),
    ],
)
def test_why_there_is_none(
    signer: Signer, tmp_path: Path, other: dict[str, str], url: str, words: str, number: int
) -> None:
    """Told in words that a person can do something about."""
    (tmp_path / "home" / "own").write_text("the-pools")
    said = signer.sign(job(tmp_path, **other), [url], FileAccess(tmp_path / "home"), upload=False)

    assert ([], number) == (said.urls, said.errno)
    assert words in said.reason
