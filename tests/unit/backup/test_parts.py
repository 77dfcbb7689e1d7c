"""The sums of a backup, its manifest, and its keys."""

from pathlib import Path
from typing import Final

import pytest

from kettle.auth.trust.keys import KeyPair, Kind
from kettle.auth.trust.server import Permissions, user
from kettle.backup import restoring
from kettle.backup.bus_heads import BusPlace
from kettle.backup.errors import BackupError
from kettle.backup.keys import misfits
from kettle.backup.manifest import Manifest, check_parts, part_of
from kettle.backup.restoring import Restored, Servers, Target, restore
from kettle.backup.sealed_part import passphrase_in, seal, unseal
from kettle.backup.verifying import secrets_in
from kettle.bus.credentials import Credential
from kettle.pool.home import Home
from kettle.pool.master_lock import MasterLock

PARTS: Final = ["database.dump", "files.tar", "files-later.tar", "secrets.tar"]


def manifest(directory: Path, *names: str) -> Manifest:
    return Manifest(
        kettle="0", pool="p", pool_id="1", at="", host="", postgres="", database="kettle", shards=[], migrations=[],
        settings=[], outside=[], elsewhere=0, parts=[part_of(directory / name) for name in names],
    )  # fmt: skip


def test_a_changed_part_is_found(tmp_path: Path) -> None:
    """A part that is shorter, other or gone is named."""
    for name in PARTS:
        (tmp_path / name).write_bytes(b"events")
    made = manifest(tmp_path, *PARTS)
    check_parts(tmp_path, made)
    (tmp_path / "database.dump").write_bytes(b"evenTs")
    with pytest.raises(BackupError, match=r"SHA-256"):
        check_parts(tmp_path, made)
    (tmp_path / "database.dump").write_bytes(b"even")
    with pytest.raises(BackupError, match=r"4 bytes"):
        check_parts(tmp_path, made)
    (tmp_path / "database.dump").unlink()
    with pytest.raises(BackupError, match=r"not complete"):
        check_parts(tmp_path, made)


@pytest.mark.parametrize(
    "names",
    [[], PARTS[:-1], [*PARTS, "secrets.sealed"], [*PARTS[1:], "elsewhere.dump"], [PARTS[0], *PARTS]],
)
def test_a_manifest_that_names_other_parts_proves_nothing(tmp_path: Path, names: list[str]) -> None:
    """A part whose sum it leaves out would be taken as it is."""
    directory = tmp_path / "backup"
    directory.mkdir()
    for name in [*PARTS, "secrets.sealed", "elsewhere.dump"]:
        (directory / name).write_bytes(b"events")
    with pytest.raises(BackupError, match="does not name the parts"):
        check_parts(directory, manifest(directory, *names))


def test_who_has_no_passphrase_exchanges_no_part_of_a_sealed_backup(tmp_path: Path) -> None:
    """
    Not with sums that fit, not what the manifest says, and not the sealed keys for others: a database is restored as it says.
    """
    parts = [*PARTS[:-1], "secrets.sealed"]
    for name in parts:
        (tmp_path / name).write_bytes(b"events")
    plain = manifest(tmp_path, *parts[:-1])
    (tmp_path / "secrets.sealed").write_bytes(seal(b"keys", b"a long passphrase", plain.said()))
    manifest(tmp_path, *parts).save(tmp_path)
    assert b"keys" == secrets_in(tmp_path, Manifest.load(tmp_path), b"a long passphrase")

    (tmp_path / "database.dump").write_bytes(b"evil")
    forged = manifest(tmp_path, *parts)
    check_parts(tmp_path, forged)
    with pytest.raises(BackupError, match="the backup was changed"):
        secrets_in(tmp_path, forged, b"a long passphrase")

    (tmp_path / "secrets.tar").write_bytes(b"others")
    forged = manifest(tmp_path, *PARTS)
    check_parts(tmp_path, forged)
    with pytest.raises(BackupError, match="not sealed"):
        secrets_in(tmp_path, forged, b"a long passphrase")


async def test_nobody_starts_a_pool_while_it_is_restored(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A master that began meanwhile would work on half of a pool, which is removed if the rest fails."""
    for name in PARTS:
        (tmp_path / name).write_bytes(b"events")
    manifest(tmp_path, *PARTS).save(tmp_path)
    home = tmp_path / "home"

    async def restored(*_told: object, **_also: object) -> Restored:
        assert MasterLock.take(Home(home)) is None
        with pytest.raises(BackupError, match="runs"):
            await restore(tmp_path, target)
        raise BackupError("the disk is full")

    monkeypatch.setattr(restoring, "_restored", restored)
    target = Target(home=home, servers=lambda _home: Servers(bus=BusPlace(pool="p")))
    with pytest.raises(BackupError, match="full"):
        await restore(tmp_path, target)
    assert [] == list(home.iterdir())


def test_manifests(tmp_path: Path) -> None:
    """
    What was saved is loaded; without a manifest it is no complete backup, and one of a later form is refused.
    """
    with pytest.raises(BackupError, match=r"no complete backup"):
        Manifest.load(tmp_path)
    (tmp_path / "database.dump").write_bytes(b"events")
    made = manifest(tmp_path, "database.dump")
    made.save(tmp_path)
    assert made == Manifest.load(tmp_path)
    text = (tmp_path / "manifest.json").read_text()
    (tmp_path / "manifest.json").write_text(text.replace('"format": 1', '"format": 2, "new": 1'))
    with pytest.raises(BackupError, match=r"a newer one"):
        Manifest.load(tmp_path)


def test_sealing() -> None:
    """Only the same passphrase opens what it has sealed, and only as it was."""
    sealed = seal(b"keys", b"a long passphrase")
    assert b"keys" not in sealed
    assert b"keys" == unseal(sealed, b"a long passphrase", name="x")
    with pytest.raises(BackupError, match=r"another passphrase"):
        unseal(sealed, b"another passphrase", name="x")
    with pytest.raises(BackupError, match=r"was changed"):
        unseal(sealed[:-1] + bytes([sealed[-1] ^ 1]), b"a long passphrase", name="x")
    with pytest.raises(BackupError, match=r"not sealed"):
        unseal(b"keys", b"a long passphrase", name="x")


def test_passphrases_are_private_and_long(tmp_path: Path) -> None:
    """A file that others can read, or with a short word, is refused; the first line counts."""
    path = tmp_path / "passphrase"
    path.write_text("correct horse battery\nnote\n")
    path.chmod(0o644)
    with pytest.raises(BackupError, match=r"others can read"):
        passphrase_in(path)
    path.chmod(0o600)
    assert b"correct horse battery" == passphrase_in(path)
    path.write_text("short\n")
    with pytest.raises(BackupError, match=r"too short"):
        passphrase_in(path)


def credential(signer: KeyPair, key: KeyPair, seed: str = "") -> bytes:
    jwt = user(signer, key.public, "schedd", Permissions(), now=0)
    return Credential(seed or key.seed, jwt).text().encode()


def test_keys_fit_each_other() -> None:
    """Good keys are good; one that is cut, swapped or signed by nobody of the pool is named."""
    signer, key, other = KeyPair.new(Kind.ACCOUNT), KeyPair.new(Kind.USER), KeyPair.new(Kind.USER)
    good = {
        "credentials/trust/account-POOL.nk": signer.seed.encode() + b"\n",
        "credentials/schedd.creds": credential(signer, key),
        "credentials/seed.creds": key.seed.encode(),
        "credentials/schedd.seal": bytes(32),
        "kettle.toml": b"[schedd]\n",
    }
    assert [] == list(misfits(good))
    for name, data, said in (
        ("credentials/trust/account-POOL.nk", b"SA", "holds no key"),
        ("credentials/schedd.creds", credential(signer, key, other.seed), "another key"),
        ("credentials/schedd.creds", credential(KeyPair.new(Kind.ACCOUNT), key), "not in the backup"),
        ("credentials/schedd.creds", b"\xff", "no credential"),
        ("credentials/schedd.seal", bytes(31), "31 bytes"),
        ("kettle.toml", b"[schedd", "cannot be read"),
    ):
        [*wrong] = misfits(good | {name: data})
        assert any(said in sentence and sentence.startswith(name) for sentence in wrong), (name, wrong)
