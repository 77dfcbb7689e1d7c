"""Whether clients will accept what a server shows, found out before it is shown: a handshake in memory."""

import ssl

from kettle.pki.contexts import Listener, client_context
from kettle.pki.explanations import failed

_ROUNDS = 8
"""More than any handshake has."""


def rehearse(listener: Listener, *, name: str, ca: str) -> None:
    """
    Connect as a client that trusts `ca` would, to `name`.

    Raises:
        UntrustedError: the files cannot be used, or such a client would refuse what they hold.
    """
    to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
    shown = Listener(
        certificate=listener.certificate, key=listener.key
    )  # a client's own certificate is not the question
    server = shown.context().wrap_bio(to_server, to_client, server_side=True)
    client = client_context(ca).wrap_bio(to_client, to_server, server_hostname=name)
    try:
        for _ in range(_ROUNDS):
            if _is_done(client) & _is_done(server):
                return
    except ssl.SSLError as error:
        raise failed(error, f"{name} in {listener.certificate}", ca) from error


def _is_done(side: ssl.SSLObject) -> bool:
    try:
        side.do_handshake()
    except ssl.SSLWantReadError:
        return False
    return True
