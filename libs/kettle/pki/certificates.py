"""Certificates of an authority, of servers and of clients, made and described; keys are ECDSA on P-256."""

import hashlib
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from ipaddress import IPv4Address, IPv6Address, ip_address
from pathlib import Path
from typing import Final, Literal, TypeVar

import msgspec
from cryptography import x509
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
    load_pem_private_key,
)
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

AUTHORITY_DAYS: Final = 3650
HOLDER_DAYS: Final = 365
_DAY_S: Final = 86400.0
_SLACK: Final = timedelta(minutes=5)
"""A certificate is valid from a little before its making, for machines whose clock is behind."""
_SOON: Final = timedelta(days=14)
_USAGES: Final = {
    "server": [ExtendedKeyUsageOID.SERVER_AUTH],
    "client": [ExtendedKeyUsageOID.CLIENT_AUTH],
    "peer": [ExtendedKeyUsageOID.SERVER_AUTH, ExtendedKeyUsageOID.CLIENT_AUTH],
}
_LONGEST_NAME: Final = 64
"""Characters of a common name, as X.509 bounds it."""

HolderKind = Literal["server", "client", "peer"]
"""A peer both listens and connects, as the servers of a cluster do to each other."""
Kind = Literal["authority"] | HolderKind
E = TypeVar("E", bound=x509.ExtensionType)


class CertificateError(Exception):
    """A certificate or key cannot be made, read or used; the message is a sentence."""


class Made(msgspec.Struct, frozen=True):
    """A certificate with its key, both as PEM."""

    certificate: bytes
    key: bytes

    def __repr__(self) -> str:
        return "Made(...)"


class Facts(msgspec.Struct, frozen=True, kw_only=True):
    """What a certificate says."""

    kind: Kind
    subject: str
    names: tuple[str, ...]
    """The names and addresses under which a server or peer may be reached."""
    issuer: str
    serial: str
    """In hexadecimal."""
    begins: datetime
    ends: datetime
    pin: str
    """Of its public key, see `pin_of`."""

    def renewal(self) -> datetime:
        """From when on it should be renewed: when a third of its life is left."""
        return self.ends - (self.ends - self.begins) / 3


def make_authority(name: str, *, now: datetime, days: int = AUTHORITY_DAYS, key: bytes = b"") -> Made:
    """
    A new authority that signs certificates of servers and clients, and of no further authorities.

    `key`: the one that it is to have; else a new one is made.
    """
    own = private_key(key) if key else ec.generate_private_key(ec.SECP256R1())
    subject = _name(name)
    builder = _builder(subject, subject, own.public_key(), now, days).add_extension(
        x509.BasicConstraints(ca=True, path_length=0), critical=True
    )
    return _made(builder.add_extension(_usage(signs=True), critical=True), own, own)


def issue(
    authority: Made,
    names: Sequence[str],
    kind: HolderKind,
    *,
    now: datetime,
    days: int = HOLDER_DAYS,
    key: bytes = b"",
) -> Made:
    """
    A certificate for a server or a peer that is reached under these names and addresses, or for a client with this name.

    `key`: of the certificate that it replaces; else a new one is made.

    Raises:
        CertificateError: the authority does not last as long, or a name cannot be one.
    """
    parent = load(authority.certificate)
    own = private_key(key) if key else ec.generate_private_key(ec.SECP256R1())
    if now + timedelta(days=days) > parent.not_valid_after_utc:
        left = (parent.not_valid_after_utc - now).days
        raise CertificateError(
            f"the authority ends in {left} days, before the certificate: ask for at most {max(left, 0)} days, or make a new authority"
        )
    builder, signer = _held(authority, _name(names[0]), own.public_key(), kind, now=now, days=days)
    if kind != "client":
        builder = builder.add_extension(
            x509.SubjectAlternativeName([_general(each) for each in names]), critical=False
        )
    return _made(builder, own, signer)


def make_request(name: str) -> tuple[bytes, bytes]:
    """A new key, and a request for a certificate with it; both PEM."""
    key = ec.generate_private_key(ec.SECP256R1())
    request = x509.CertificateSigningRequestBuilder().subject_name(_name(name)).sign(key, hashes.SHA256())
    pem = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    return pem, request.public_bytes(Encoding.PEM)


def sign_request(authority: Made, request: bytes, *, now: datetime, days: int = HOLDER_DAYS) -> bytes:
    """
    The certificate (PEM) of one who both listens and connects, for a request (PEM); of its words only the name is used.

    Raises:
        CertificateError: it is no request, it is not signed with its own key, or its key is of another kind than ours.
    """
    asked = _proved(request)
    builder, signer = _held(
        authority, _name(_common(asked.subject)), _elliptic(asked), "peer", now=now, days=days
    )
    return builder.sign(signer, hashes.SHA256()).public_bytes(Encoding.PEM)


def sign_client(
    authority: Made,
    request: bytes,
    name: str,
    *,
    now: datetime,
    seconds: float,
    said: x509.UnrecognizedExtension,
) -> bytes:
    """
    The certificate (PEM) of a client for a request (PEM), of whose words none is used; `said`: what it says besides.

    Raises:
        CertificateError: as `sign_request`.
    """
    public = _elliptic(_proved(request))
    builder, signer = _held(authority, _name(name), public, "client", now=now, days=seconds / _DAY_S)
    builder = builder.add_extension(said, critical=False)
    return builder.sign(signer, hashes.SHA256()).public_bytes(Encoding.PEM)


def said_in(certificate: x509.Certificate, called: x509.ObjectIdentifier) -> bytes:
    """What a certificate says besides under this; empty: nothing."""
    try:
        found = certificate.extensions.get_extension_for_oid(called).value
    except (x509.ExtensionNotFound, ValueError):
        return b""
    return found.value if isinstance(found, x509.UnrecognizedExtension) else b""


def _proved(request: bytes) -> x509.CertificateSigningRequest:
    """A request (PEM) that is signed with the key that it is for; raises CertificateError."""
    try:
        asked = x509.load_pem_x509_csr(request)
        proved = asked.is_signature_valid
    except (ValueError, UnsupportedAlgorithm) as error:
        raise CertificateError("this is no request for a certificate in PEM form") from error
    if not proved:
        raise CertificateError("the request is not signed with the key that it is for")
    return asked


def _elliptic(asked: x509.CertificateSigningRequest) -> ec.EllipticCurvePublicKey:
    """The key of a request; raises CertificateError: it is of another kind than ours."""
    try:
        public = asked.public_key()
    except (ValueError, UnsupportedAlgorithm) as error:
        raise CertificateError("this is no request for a certificate in PEM form") from error
    if not isinstance(public, ec.EllipticCurvePublicKey):
        raise CertificateError("the key of the request is no key on an elliptic curve")
    return public


def load(pem: bytes, where: str = "the certificate") -> x509.Certificate:
    """The first certificate of a file.  Raises CertificateError."""
    try:
        return x509.load_pem_x509_certificate(pem)
    except ValueError as error:
        raise CertificateError(f"{where} holds no certificate in PEM form") from error


def private_key(pem: bytes, where: str = "the key") -> ec.EllipticCurvePrivateKey:
    """The key of a file.  Raises CertificateError."""
    try:
        key = load_pem_private_key(pem, password=None)
    except (ValueError, TypeError) as error:
        raise CertificateError(f"{where} holds no private key in PEM form without a password") from error
    if not isinstance(key, ec.EllipticCurvePrivateKey):
        raise CertificateError(f"{where} is no key on an elliptic curve, as `kettle pki` makes them")
    return key


def facts(certificate: x509.Certificate) -> Facts:
    """What it says."""
    names = _extension(certificate, x509.SubjectAlternativeName)
    usage = _extension(certificate, x509.ExtendedKeyUsage)
    basic = _extension(certificate, x509.BasicConstraints)
    kind: Kind = "server"
    if basic is not None and basic.ca:
        kind = "authority"
    elif usage is not None and ExtendedKeyUsageOID.SERVER_AUTH not in usage:
        kind = "client"
    elif usage is not None and ExtendedKeyUsageOID.CLIENT_AUTH in usage:
        kind = "peer"
    return Facts(
        kind=kind,
        subject=_common(certificate.subject),
        names=tuple(str(each.value) for each in names or ()),
        issuer=_common(certificate.issuer),
        serial=f"{certificate.serial_number:x}",
        begins=certificate.not_valid_before_utc,
        ends=certificate.not_valid_after_utc,
        pin=pin_of(certificate),
    )


def pin_of(certificate: x509.Certificate) -> str:
    """
    `sha256:` and the hexadecimal SHA-256 of the public key with its parameters (SubjectPublicKeyInfo).

    It stays the same when an authority renews its certificate with the same key.
    """
    public = certificate.public_key().public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)
    return f"sha256:{hashlib.sha256(public).hexdigest()}"


def pins_in(pem: bytes) -> dict[str, bytes]:
    """
    The authorities among the certificates of a file, by their pins.  Raises CertificateError if there is none.
    """
    try:
        found = x509.load_pem_x509_certificates(pem)
    except ValueError as error:
        raise CertificateError("it holds no certificate in PEM form") from error
    pins = {
        pin_of(each): each.public_bytes(Encoding.PEM) for each in found if facts(each).kind == "authority"
    }
    if not pins:
        raise CertificateError("it holds the certificate of no authority")
    return pins


def remark(path: Path, now: datetime) -> str:
    """
    What its administrator should know about the certificate of a listener: that it has expired, or will soon; else nothing.

    Raises CertificateError.
    """
    try:
        ends = load(path.read_bytes(), str(path)).not_valid_after_utc
    except OSError as error:
        raise CertificateError(f"{path} cannot be read: {error.strerror}") from error
    if now >= ends:
        return f"the certificate in {path} has expired ({ends:%Y-%m-%d %H:%M} UTC): no client connects; renew it (kettle pki renew)"
    if (left := ends - now) < _SOON:
        return f"the certificate in {path} ends in {left.days} days: renew it (kettle pki renew), and say: kettle reconfig"
    return ""


def _held(
    authority: Made,
    subject: x509.Name,
    public: ec.EllipticCurvePublicKey,
    kind: HolderKind,
    *,
    now: datetime,
    days: float,
) -> tuple[x509.CertificateBuilder, ec.EllipticCurvePrivateKey]:
    """A certificate that is no authority's, and the key that signs it."""
    signer, parent = private_key(authority.key), load(authority.certificate)
    builder = (
        _builder(subject, parent.subject, public, now, days)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(_usage(signs=False), critical=True)
        .add_extension(x509.ExtendedKeyUsage(_USAGES[kind]), critical=False)
        .add_extension(
            x509.AuthorityKeyIdentifier.from_issuer_public_key(signer.public_key()), critical=False
        )
    )
    return builder, signer


def _builder(
    subject: x509.Name, issuer: x509.Name, public: ec.EllipticCurvePublicKey, now: datetime, days: float
) -> x509.CertificateBuilder:
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(public)
        .serial_number(x509.random_serial_number())
        .not_valid_before(now.astimezone(UTC) - _SLACK)
        .not_valid_after(now.astimezone(UTC) + timedelta(days=days))
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(public), critical=False)
    )


def _made(
    builder: x509.CertificateBuilder, own: ec.EllipticCurvePrivateKey, signer: ec.EllipticCurvePrivateKey
) -> Made:
    certificate = builder.sign(signer, hashes.SHA256())
    key = own.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    return Made(certificate.public_bytes(Encoding.PEM), key)


def _usage(*, signs: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=not signs, key_cert_sign=signs, crl_sign=signs, content_commitment=False,
        key_encipherment=False, data_encipherment=False, key_agreement=False, encipher_only=False, decipher_only=False,
    )  # fmt: skip


def _name(text: str) -> x509.Name:
    if not text or not text.isprintable() or len(text) > _LONGEST_NAME:
        raise CertificateError(
            f"'{text}' cannot be the name in a certificate: at most {_LONGEST_NAME} characters"
        )
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, text)])


def _general(name: str) -> x509.GeneralName:
    address = address_of(name)
    if address is not None:
        return x509.IPAddress(address)
    try:
        return x509.DNSName(name.encode("idna").decode("ascii").lower())
    except (UnicodeError, ValueError) as error:
        raise CertificateError(f"'{name}' is neither the name of a host nor an address") from error


def address_of(name: str) -> IPv4Address | IPv6Address | None:
    """The address that a text is; None for a name."""
    try:
        return ip_address(name)
    except ValueError:
        return None


def _extension(certificate: x509.Certificate, kind: type[E]) -> E | None:
    try:
        return certificate.extensions.get_extension_for_class(kind).value
    except x509.ExtensionNotFound:
        return None


def _common(name: x509.Name) -> str:
    found = name.get_attributes_for_oid(NameOID.COMMON_NAME)
    return str(found[0].value) if found else name.rfc4514_string()
