"""What certificates say, how long they last, and what is refused."""

import stat
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.hashes import SHA256

from kettle.pki.authority_files import AuthorityFiles, of_file
from kettle.pki.certificates import (
    CertificateError,
    facts,
    issue,
    load,
    make_authority,
    pin_of,
    pins_in,
    private_key,
    remark,
)

NOW = datetime(2026, 11, 25, 12, 0, tzinfo=UTC)


@pytest.fixture
def files(tmp_path: Path) -> AuthorityFiles:
    """An authority of ten years."""
    files = AuthorityFiles(tmp_path / "pki")
    files.make("Trial", now=NOW)
    return files


def test_an_authority_signs_what_others_can_check(files: AuthorityFiles) -> None:
    """
    On P-256, for servers and clients, with serials that differ, and no right to sign further authorities.
    """
    server = files.issue(["bus.example.org", "192.0.2.7", "2001:db8::7"], "server", now=NOW)
    client = files.issue(["monitoring"], "client", now=NOW)
    peer = files.issue(["bus-0"], "peer", now=NOW)
    authority = load(files.kept("ca").certificate.read_bytes())
    public = authority.public_key()
    assert isinstance(public, ec.EllipticCurvePublicKey)
    assert isinstance(public.curve, ec.SECP256R1)
    for each in (server, client, peer):
        certificate = load(each.certificate.read_bytes())
        certificate.verify_directly_issued_by(authority)
        assert isinstance(certificate.signature_hash_algorithm, SHA256)
    assert ("bus.example.org", "192.0.2.7", "2001:db8::7") == server.facts.names
    assert ["authority", "server", "client", "peer"] == [
        files.kept("ca").facts.kind,
        server.facts.kind,
        client.facts.kind,
        peer.facts.kind,
    ]
    assert "peer" == files.renew("bus-0", now=NOW).facts.kind
    assert 4 == len({each.facts.serial for each in files.all()})
    assert timedelta(days=365) == server.facts.ends - NOW


def test_only_the_owner_reads_a_key(files: AuthorityFiles) -> None:
    files.issue(["bus"], "server", now=NOW)
    for name in ("ca", "bus"):
        assert 0o600 == stat.S_IMODE((files.directory / f"{name}.key").stat().st_mode)
        assert 0o644 == stat.S_IMODE((files.directory / f"{name}.pem").stat().st_mode)
    assert "PRIVATE" not in (files.directory / "bus.pem").read_text()


def test_a_renewal_keeps_names_and_key_and_is_one_rename(files: AuthorityFiles) -> None:
    """So what reads both files at any moment has two that fit; the serial is a new one."""
    before = files.issue(["bus", "10.0.0.1"], "server", now=NOW, days=90)
    key, inode = before.key.read_bytes(), before.certificate.stat().st_ino
    later = NOW + timedelta(days=70)
    assert before.facts.renewal() < later
    after = files.renew("bus", now=later)
    assert key == after.key.read_bytes()
    assert inode != after.certificate.stat().st_ino
    assert before.facts.names == after.facts.names
    assert before.facts.serial != after.facts.serial
    assert later + timedelta(days=90) == after.facts.ends
    assert before.facts.pin == after.facts.pin
    assert [] == [path.name for path in files.directory.iterdir() if path.name.startswith(".")]


def test_a_pin_is_of_the_key_and_found_among_several(files: AuthorityFiles) -> None:
    """Another authority with the same name has another pin; a server's certificate is no authority."""
    mine, other = files.kept("ca").certificate.read_bytes(), make_authority("Trial", now=NOW).certificate
    server = files.issue(["bus"], "server", now=NOW).certificate.read_bytes()
    assert {pin_of(load(mine)): mine, pin_of(load(other)): other} == pins_in(server + mine + other)
    assert pin_of(load(mine)).startswith("sha256:")
    assert len("sha256:") + 64 == len(pin_of(load(mine)))
    for nothing in (b"", b"nothing", server):
        with pytest.raises(CertificateError):
            pins_in(nothing)


@pytest.mark.parametrize(
    ("names", "sentence"),
    [
        (["../evil"], "neither the name of a host nor an address"),
        (["bus", "a b"], "'a b' is neither"),
        (["ca"], "cannot be the name of a file"),
        (["x" * 65], "at most 64 characters"),
    ],
)
def test_names_that_cannot_be_one_are_refused(files: AuthorityFiles, names: list[str], sentence: str) -> None:
    """With a sentence, and no file is left behind."""
    before = sorted(files.directory.iterdir())
    with pytest.raises(CertificateError, match=sentence):
        files.issue(names, "server", now=NOW)
    assert before == sorted(files.directory.iterdir())


def test_nothing_is_replaced_by_mistake(files: AuthorityFiles) -> None:
    """Neither an authority nor a certificate; nor does one outlast its authority."""
    files.issue(["bus"], "server", now=NOW)
    with pytest.raises(CertificateError, match="exists: show the authority"):
        files.make("Another", now=NOW)
    with pytest.raises(CertificateError, match="prolong it with kettle pki renew bus"):
        files.issue(["bus"], "server", now=NOW)
    with pytest.raises(CertificateError, match="ask for at most 3650 days"):
        files.issue(["long"], "server", now=NOW, days=3651)
    with pytest.raises(CertificateError, match="is not renewed but replaced"):
        files.renew("ca", now=NOW)
    with pytest.raises(CertificateError, match="there are: bus, ca"):
        files.renew("bux", now=NOW)
    with pytest.raises(CertificateError, match="make one with kettle pki init"):
        AuthorityFiles(files.directory / "none").all()


def test_what_is_no_certificate_is_named(tmp_path: Path) -> None:
    (tmp_path / "text.pem").write_text("hello")
    with pytest.raises(CertificateError, match=r"text\.pem holds no certificate"):
        of_file(tmp_path / "text.pem")
    with pytest.raises(CertificateError, match="cannot be read"):
        of_file(tmp_path / "none.pem")
    with pytest.raises(CertificateError, match="no private key"):
        private_key(b"hello")


def test_the_end_of_a_certificate_is_told_before_it_comes(files: AuthorityFiles) -> None:
    """Two weeks before, and after it."""
    path = files.issue(["bus"], "server", now=NOW, days=30).certificate
    assert "" == remark(path, NOW)
    assert "ends in 9 days" in remark(path, NOW + timedelta(days=20, hours=1))
    assert "has expired" in remark(path, NOW + timedelta(days=31))


def test_names_are_international() -> None:
    """As they stand in the name service."""
    made = issue(make_authority("Trial", now=NOW), ["bücher.example"], "server", now=NOW)
    assert ("xn--bcher-kva.example",) == facts(load(made.certificate)).names
