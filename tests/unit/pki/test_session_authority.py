import base64
import ssl
from datetime import UTC, datetime, timedelta

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.serialization import Encoding

from kettle.pki.certificates import CertificateError, load, make_request, pin_of
from kettle.pki.session_authority import SessionAuthority

NOW = datetime(2026, 11, 1, tzinfo=UTC)
SECRET = bytes(range(32))


def authority(session: str = "abc", secret: bytes = SECRET, now: datetime = NOW) -> SessionAuthority:
    return SessionAuthority(secret, session, now=now)


def test_the_key_follows_from_secret_and_session() -> None:
    """It is equal at each call and after each restart, and another one for each session and each secret."""
    pins = [
        pin_of(load(each.certificate))
        for each in (
            authority(),
            authority(now=NOW + timedelta(days=3)),
            authority("abf"),
            authority(secret=SECRET[::-1]),
        )
    ]
    assert pins[0] == pins[1]
    assert 3 == len(set(pins))


def test_a_member_listens_and_connects() -> None:
    """Its certificate is believed by who believes the authority, as that of any later call."""
    key, request = make_request("job 12.0")
    signed = load(authority().sign(request, now=NOW))
    signed.verify_directly_issued_by(load(authority(now=NOW + timedelta(hours=1)).certificate))
    with pytest.raises(ValueError, match="match"):
        signed.verify_directly_issued_by(load(authority("abf").certificate))
    usage = signed.extensions.get_extension_for_class(x509.ExtendedKeyUsage).value
    assert {"1.3.6.1.5.5.7.3.1", "1.3.6.1.5.5.7.3.2"} == {each.dotted_string for each in usage}
    assert b"PRIVATE KEY" in key
    assert ssl.PEM_cert_to_DER_cert(authority().certificate.decode())


def test_what_is_not_signed() -> None:
    """No request; one for a key that its sender has not; and nothing is derived from a short secret."""
    with pytest.raises(CertificateError, match="no request"):
        authority().sign(b"nothing", now=NOW)
    key, request = make_request("job 12.0")
    del key
    der = bytearray(x509.load_pem_x509_csr(request).public_bytes(Encoding.DER))
    der[-1] ^= 1
    forged = (
        b"-----BEGIN CERTIFICATE REQUEST-----\n"
        + base64.encodebytes(bytes(der))
        + b"-----END CERTIFICATE REQUEST-----\n"
    )
    with pytest.raises(CertificateError, match=r"not signed|no request"):
        authority().sign(forged, now=NOW)
    with pytest.raises(CertificateError, match="too short"):
        authority(secret=b"short")
