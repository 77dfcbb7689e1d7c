"""The accounts of a pool on a server of a test's own, with the credentials of those whom the test names."""

from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path

from kettle.auth.bus_permissions import JOINED
from kettle.auth.trust.accounts import Account
from kettle.auth.trust.callout import RESPONDER, WATCHER, CalloutKeys
from kettle.auth.trust.files import write
from kettle.auth.trust.keys import KeyPair
from kettle.auth.trust.keys import Kind as KeyKind
from kettle.auth.trust.pool import CONNECTIONS, AccessPoint, Kind, PoolTrust
from kettle.auth.trust.server import PROBE, Statements
from kettle.bus.credentials import Credential
from kettle_wire.identity import Identity
from kettle_wire.subjects import Subjects

SENTINEL = "sentinel"
"""The credential of who shows a token."""
KINDS: Mapping[str, Kind] = {kind.role: kind for kind in Kind}
"""By the role that permissions are made for; any other is a service's."""


class Members:
    """See `kettle.auth.trust.server.Trust`."""

    def __init__(
        self,
        directory: Path,
        subjects: Subjects,
        who: Mapping[str, tuple[str, Identity]],
        *,
        callout: bool = False,
        connections: Mapping[Account, int] = CONNECTIONS,
        apart: bool = True,
    ) -> None:
        """
        `who`: by the name of the credential a role, and as whom it speaks; `callout`: people come by token, too;
        `connections`: see `PoolTrust`; `apart`: see `AccessPoint`.
        """
        self._directory = directory
        self._trust = PoolTrust(directory / "trust", subjects, callout=callout, connections=connections)
        joined = {
            identity.access_point: AccessPoint(KeyPair.new(KeyKind.ACCOUNT).public, apart=apart)
            for role, identity in who.values()
            if role in JOINED
        }
        self._trust.keep_access_points(joined)
        for name, (role, identity) in {**who, PROBE: (PROBE, None)}.items():
            kind = KINDS.get(role)
            if kind is None:
                write(self.credentials(name), partial(self._trust.service, role))
            else:
                assert identity is not None
                write(
                    self.credentials(name),
                    partial(self._trust.member, kind, identity.access_point or identity.name),
                )
        if callout:
            keys = self._trust.callout_keys()
            for name, text in (
                (SENTINEL, keys.sentinel),
                (RESPONDER.name, keys.responder),
                (WATCHER.name, keys.watcher),
            ):
                self.credentials(name).write_text(text)

    def statements(self) -> Statements:
        """See `Trust`."""
        return self._trust.statements()

    def credentials(self, name: str) -> Path:
        """See `Trust`."""
        return self._directory / f"{name}.creds"

    def probe(self) -> str:
        """See `Trust`."""
        return str(self.credentials(PROBE))

    def teller(self) -> Credential:
        """See `Trust`."""
        return self._trust.teller()

    def revoke(self, kind: Kind, publics: Sequence[str]) -> None:
        """See `PoolTrust.revoke`; the server has to be told afterwards."""
        self._trust.revoke(kind, publics)

    def callout_keys(self) -> CalloutKeys:
        """See `PoolTrust.callout_keys`."""
        return self._trust.callout_keys()
