"""
Who may connect to the pool's own NATS server: its services, the startds of this machine, the person whose pool it is, other
accounts, and schedds and collectors of other pools.

Each has a file of credentials in the pool's directory, whose key is made the first time and kept.  Who is not admitted any
more loses his connections, and is believed again when he is admitted again, as long as the file is there.  Of an account of this
machine it has another name meanwhile, so who looks for it sees that this account may not come.
"""

import logging
import socket
from collections.abc import Callable, Collection, Generator, Iterable, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Final

import msgspec

from kettle.accounts.lookup import own_name
from kettle.auth.bus_permissions import FORWARDER, MONITOR, VISITOR
from kettle.auth.private_files import write_private
from kettle.auth.trust.files import key_in, write
from kettle.auth.trust.keys import TrustError
from kettle.auth.trust.pool import AccessPoint, Kind, PoolTrust
from kettle.auth.trust.server import PROBE, Statements
from kettle.bus.credentials import Credential
from kettle.embedded import EmbeddedError
from kettle.pool.home import Home
from kettle.runtime import Settings, SettingsError
from kettle_services.master.account_access import credential_of
from kettle_services.master.domain.start_order import role_of, shards
from kettle_services.master.settings import MasterSettings
from kettle_wire.subjects import Subjects

_log: Final = logging.getLogger(__name__)
PERSON: Final = "user"
"""The name of the person's credential."""

MASTER: Final = "master"
"""The name of the master's own credential."""

AUDIT: Final = "audit"
"""The name of the credential with which `kettle log check` reads the frames."""

SENTINEL: Final = "sentinel"
"""The name of what people show who come with a token; no secret."""

PEOPLE_KEYS: Final = "people-keys.json"
"""The file of keys with which iam lets them in."""

_CREDENTIAL: Final = ".creds"
_SHUT_OUT: Final = ".shut-out"
"""What the file of an account ends with that may not come."""
_STARTD: Final = "startd"
IAM: Final = "iam"
"""The role that lets people in who come with a token."""


def visitors_credential(name: str) -> str:
    """The name of the credential of a visiting schedd."""
    return f"{VISITOR}-{name}"


def forwarders_credential(name: str) -> str:
    """The name of the credential of a collector that forwards."""
    return f"{FORWARDER}-{name}"


_OF_OTHERS: Final = {
    Kind.VISITOR: visitors_credential("*"),
    Kind.FORWARDER: forwarders_credential("*"),
    Kind.PERSON: credential_of("*"),
}


class _Startd(Settings, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What matters here of a startd's settings."""

    name: str = ""


def startd_name(environ: Mapping[str, str]) -> str:
    """
    The name that a startd with this environment will have; what else is wrong with its settings it finds out itself.
    """
    try:
        given = _Startd.read(_STARTD, environ=environ).given.get("name")
    except SettingsError:
        given = None
    return str(given.value) if given is not None and given.value else socket.gethostname()


class ShutOutPeople:
    """Who is banned, as iam said last: it need not be there when the pool starts."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def people(self) -> frozenset[str]:
        """Raises TrustError if the file is damaged: then nobody knows who is not to be let in."""
        try:
            return msgspec.json.decode(self._path.read_bytes(), type=frozenset[str])
        except FileNotFoundError:
            return frozenset()
        except msgspec.DecodeError as error:
            raise TrustError(
                f"{self._path}: this is no list of people ({error}); remove the file, and iam says again who is banned"
            ) from error

    def keep(self, people: Collection[str]) -> None:
        """Those, and nobody else."""
        write_private(self._path, msgspec.json.encode(sorted(people)).decode())


class BusMembers:
    """
    The credentials of a pool, as its settings want them; see `kettle.auth.trust.server.Trust`.

    Whatever needs a file of theirs that is damaged, or cannot be read or written, raises EmbeddedError.
    """

    def __init__(
        self,
        home: Home,
        settings: MasterSettings,
        accounts: Sequence[str],
        *,
        environ_of: Callable[[str], Mapping[str, str]],
    ) -> None:
        """`accounts`: other accounts of this machine; `environ_of`: of an entry of the daemon list."""
        self._home = home
        self._trust = PoolTrust(
            home.credentials / "trust",
            Subjects(settings.pool),
            shards=shards(settings.daemon_list),
            callout=IAM in map(role_of, settings.daemon_list),
        )
        self._environ_of = environ_of
        self._shut_out = ShutOutPeople(home.credentials / "shut-out.json")
        self._wanted = settings, accounts
        self.admit(settings, accounts)

    def admit(self, settings: MasterSettings, accounts: Sequence[str]) -> None:
        """Let in those whom other settings name, and no others."""
        with self._files_used():
            self._admit(settings, accounts)
            self._wanted = settings, accounts

    def shut_out(self, people: Collection[str]) -> bool:
        """
        Let in none of these by the account that they have here; the one that runs the pool has all keys, and stays.  Whether
        that changes anything.
        """
        with self._files_used():
            try:
                if self._shut_out.people() == frozenset(people):
                    return False
            except TrustError:  # it is written again
                pass
            self._shut_out.keep(people)
            self._admit(*self._wanted)
            return True

    def admit_access_point(self, settings: MasterSettings, name: str, people: str) -> bool:
        """
        Let in the people of an access point that has joined, and the pool's services read its events; without `people` no more.
        Whether that has changed anything.
        """
        with self._files_used():
            before = self._trust.access_points()
            after = {other: each for other, each in before.items() if other != name}
            if people:
                after[name] = AccessPoint(people, apart=True)
            if after == before:
                return False
            self._trust.keep_access_points(after)
            self._write_services(settings)
        return True

    @property
    def people_account(self) -> str:
        """The public key of the account that people are in."""
        with self._files_used():
            return self._trust.people_account

    def access_points(self) -> list[str]:
        """The names of those that have joined."""
        with self._files_used():
            return sorted(self._trust.access_points())

    def _admit(self, settings: MasterSettings, accounts: Sequence[str]) -> None:
        shut_out = self._shut_out.people()
        members = {
            PERSON: (Kind.ADMINISTRATOR, own_name()),
            MONITOR: (Kind.MONITOR, MONITOR),
            **{credential_of(name): (Kind.PERSON, name) for name in accounts if name not in shut_out},
            **{visitors_credential(name): (Kind.VISITOR, name) for name in settings.flock_from},
            **{forwarders_credential(name): (Kind.FORWARDER, name) for name in settings.view_from},
        }
        roles = {*map(role_of, settings.daemon_list), AUDIT, MASTER, PROBE} - {_STARTD}
        self._rename_seeds([*members, *roles, *settings.daemon_list, *_OF_OTHERS.values()])
        for kind, pattern in _OF_OTHERS.items():
            files = {path.stem: path for path in self._files(pattern)}
            self._trust.revoke(kind, self._keys(path for name, path in files.items() if name not in members))
            self._trust.restore(kind, self._keys(path for name, path in files.items() if name in members))
        self._set_aside(members)
        for credential, (kind, name) in members.items():
            self._write(credential, partial(self._trust.member, kind, name))
        self._write_services(settings)
        for entry in settings.daemon_list:
            if role_of(entry) == _STARTD:
                name = startd_name(self._environ_of(entry))
                self._write(entry, partial(self._trust.member, Kind.WORKER, name))

        if self._trust.callout:
            keys = self._trust.callout_keys()
            write_private(self._home.credentials / PEOPLE_KEYS, keys.text())
            write_private(self.credentials(SENTINEL), keys.sentinel)

    def _write_services(self, settings: MasterSettings) -> None:
        for role in {*map(role_of, settings.daemon_list), AUDIT, MASTER, PROBE} - {_STARTD}:
            self._write(role, partial(self._trust.service, role))

    def revoke(self, kind: Kind, keys: Sequence[str]) -> None:
        """
        Believe nothing of what was said of these keys until now, also if that was so before and more was said since.
        """
        with self._files_used():
            self._trust.restore(kind, keys)
            self._trust.revoke(kind, keys)

    def statements(self) -> Statements:
        """See `Trust`."""
        with self._files_used():
            return self._trust.statements()

    def credentials(self, name: str) -> Path:
        """See `Trust`; of a startd the name is its entry in the daemon list."""
        return self._home.credential(name)

    def probe(self) -> str:
        """See `Trust`."""
        return str(self.credentials(PROBE))

    def teller(self) -> Credential:
        """See `Trust`."""
        with self._files_used():
            return self._trust.teller()

    @contextmanager
    def _files_used(self) -> Generator[None]:
        """Whatever is wrong with a file is said in a sentence that names it."""
        try:
            yield
        except TrustError as error:
            raise EmbeddedError(str(error)) from error
        except OSError as error:
            named = error.filename or self._home.credentials
            raise EmbeddedError(f"{named} cannot be read or written: {error.strerror or error}") from error

    def _rename_seeds(self, names: Iterable[str]) -> None:
        """
        Files of a version that had no accounts on the bus hold seeds alone, and have the name of such: the keys are kept.
        """
        for name in names:
            for seed in list(self._home.credentials.glob(f"{name}.nk")):
                own = seed.with_suffix(".creds")
                if not own.exists():
                    seed.rename(own)
                    _log.warning("%s is now %s: it holds what is said of its key, too", seed, own.name)

    def _files(self, pattern: str) -> Iterable[Path]:
        """Those that were set aside come first, so that one in use counts."""
        for suffix in (_SHUT_OUT, _CREDENTIAL):
            yield from self._home.credentials.glob(f"{pattern}{suffix}")

    def _set_aside(self, members: Collection[str]) -> None:
        """
        Have files of accounts that are no members under another name, and those of members under their own.
        """
        for path in list(self._files(credential_of("*"))):
            wanted = path.with_suffix(_CREDENTIAL if path.stem in members else _SHUT_OUT)
            if path != wanted and not (wanted.suffix == _CREDENTIAL and wanted.exists()):
                path.rename(wanted)

    def _keys(self, paths: Iterable[Path]) -> list[str]:
        return [key.public for path in paths if (key := key_in(path)) is not None]

    def _write(self, name: str, state: Callable[[str], str]) -> None:
        write(self.credentials(name), state)
