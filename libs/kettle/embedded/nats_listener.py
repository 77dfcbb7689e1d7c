"""How other machines reach our NATS server: an address of this machine, and a certificate for it."""

from pathlib import Path
from typing import TYPE_CHECKING, Final

import msgspec

from kettle.auth.private_files import write_private
from kettle.embedded.errors import EmbeddedError

if TYPE_CHECKING:
    from kettle.bus.nats_driver import Client

LOOPBACK: Final = "127.0.0.1"
_CERTIFICATE: Final = "tls.pem"
_KEY: Final = "tls.key"


class NatsListener(msgspec.Struct, frozen=True, kw_only=True):
    """Where the server listens, and the paths of what it shows there."""

    certificate: Path
    key: Path
    ca: Path
    """Of the authority by which clients trust the certificate."""
    host: str = LOOPBACK
    """The name or address on which it listens."""
    name: str = LOOPBACK
    """The name or address by which clients connect; it is in the certificate."""

    def copy_to(self, directory: Path) -> list[Path]:
        """
        Copies for the server, which may run as an account that cannot read the files; what they hold may be new.

        Raises:
            EmbeddedError: they cannot be read.
        """
        try:
            return [
                write_private(directory / name, path.read_text(encoding="ascii"))
                for name, path in ((_CERTIFICATE, self.certificate), (_KEY, self.key))
            ]
        except (OSError, UnicodeDecodeError) as error:
            said = getattr(error, "strerror", "") or "it is no text"
            raise EmbeddedError(
                f"{getattr(error, 'filename', '') or self.certificate} cannot be read: {said}"
            ) from error

    def is_shown(self, directory: Path) -> bool:
        """Whether the copies hold what the files hold."""
        pairs = ((_CERTIFICATE, self.certificate), (_KEY, self.key))
        try:
            return all((directory / name).read_bytes() == path.read_bytes() for name, path in pairs)
        except OSError:
            return False

    def configuration(self) -> str:
        """
        The part of the server's file.

        A client may speak first, as ours do; to one that waits for the server, as NATS had it once, the server says after
        50 ms that it has to encrypt.
        """
        return f"""\
tls {{
  cert_file: "{_CERTIFICATE}"
  key_file: "{_KEY}"
  min_version: "1.2"
  handshake_first: auto
}}
"""


def in_url(host: str) -> str:
    """A name or address as it stands in a URL."""
    return f"[{host}]" if ":" in host else host


def probing_client(listener: NatsListener | None) -> "Client":
    """A client to find out whether the server answers; only who starts a server loads it."""
    from kettle.bus.nats_driver import Client

    if listener is None:
        return Client()
    from kettle.bus.encrypted_stream import EncryptedStreams
    from kettle.bus.nats_transport import NatsClient, TcpTransport

    return NatsClient(TcpTransport(EncryptedStreams(str(listener.ca))))
