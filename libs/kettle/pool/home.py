"""
`$KETTLE_HOME`: where everything of a personal pool lies, and who may look into it.

The directory is the pool's only protection on a shared machine: credentials, sockets and sandboxes lie below it.  It is
made for its owner alone, and one that others can enter or own is refused rather than repaired: what others could do
there before is not known.
"""

import os
import secrets
import shutil
import stat
import tempfile
from pathlib import Path
from typing import Final

import msgspec

from kettle.pool.errors import HomeRefusedError

_SOCKET_PATH_BYTES: Final = 107
_LONGEST_SOCKET: Final = "/run/.s.PGSQL.5432.lock"
_RUN_PREFIX: Final = "kettle-run-"


class Home(msgspec.Struct, frozen=True):
    """
    The paths of one pool.  What a server or a service keeps below its own directory is its own business.
    """

    path: Path

    @property
    def lock(self) -> Path:
        """Held by the living master, and says who that is."""
        return self.path / "master.lock"

    @property
    def state(self) -> Path:
        """What the master runs, written by it at each change."""
        return self.path / "state.json"

    @property
    def switched_off(self) -> Path:
        """The daemons that an administrator has switched off; not there if there are none."""
        return self.path / "off.json"

    @property
    def identity(self) -> Path:
        """The pool's id, made once; also the sign that this directory is a pool's."""
        return self.path / "pool.id"

    @property
    def settings(self) -> Path:
        """The settings of the pool's services, made at the first start and kept."""
        return self.path / "kettle.toml"

    @property
    def log(self) -> Path:
        """One file per service."""
        return self.path / "log"

    @property
    def credentials(self) -> Path:
        """The credentials of each service and of the person."""
        return self.path / "credentials"

    @property
    def certificates(self) -> Path:
        """The authority that `kettle pki` makes, if it made one: it may, before there is a pool."""
        return self.path / "pki"

    @property
    def in_use(self) -> Path:
        """The settings that each daemon works with, written by it; gone with the master that runs them."""
        return self.run / "in-use"

    @property
    def execute(self) -> Path:
        """The sandboxes of running jobs."""
        return self.path / "execute"

    @property
    def run(self) -> Path:
        """Where sockets are; a link to a directory elsewhere if this path is too long for a socket."""
        return self.path / "run"

    def pool_id(self) -> str:
        """The pool's id; empty if no pool was ever started here."""
        try:
            return self.identity.read_text(encoding="ascii").strip()
        except FileNotFoundError:
            return ""

    def credential(self, name: str) -> Path:
        """
        What one service, or the person (`user`), shows to the bus: where a site gave it a seed alone, that.
        """
        seed = self.credentials / f"{name}.nk"
        own = self.credentials / f"{name}.creds"
        return seed if seed.exists() and not own.exists() else own


def open_home(path: Path, *, uid: int | None = None) -> Home:
    """
    The home of a pool, made if it is not there.

    Raises:
        HomeRefusedError: others could read or change what is in it, or it is full of something else.
    """
    path = Path(os.path.abspath(path.expanduser()))  # noqa: PTH100 - `resolve` would hide a link that others can turn
    try:
        path.mkdir(mode=0o700, parents=True, exist_ok=True)
        path = path.resolve()
        _refuse_open(path, os.geteuid() if uid is None else uid)
        home = Home(path)
        if not home.pool_id():
            _found(home, os.geteuid() if uid is None else uid)
        for directory in (home.log, home.credentials, home.execute):
            directory.mkdir(mode=0o700, exist_ok=True)
    except FileExistsError as error:
        raise HomeRefusedError(path, "is not a directory.") from error
    except OSError as error:
        raise HomeRefusedError(path, f"cannot be used as the pool's directory: {error.strerror}.") from error
    return home


def existing_home(path: Path) -> Home | None:
    """The home of a pool that was started before; None if there is none."""
    home = Home(path.expanduser().resolve())
    try:
        return home if home.pool_id() else None
    except OSError as error:
        raise HomeRefusedError(home.path, f"cannot be read: {error.strerror}.") from error


def _refuse_open(path: Path, uid: int) -> None:
    found = path.stat()
    if not stat.S_ISDIR(found.st_mode):
        raise HomeRefusedError(path, "is not a directory.")
    if found.st_uid != uid:
        raise HomeRefusedError(
            path,
            f"belongs to user {found.st_uid}, not to you ({uid}): choose another directory with KETTLE_HOME.",
        )
    if mode := stat.S_IMODE(found.st_mode) & 0o077:
        raise HomeRefusedError(
            path,
            f"is open to others (mode {stat.S_IMODE(found.st_mode):04o}, of which {mode:04o} must go): "
            f"see that nobody left anything there, then `chmod 700` it, or choose another with KETTLE_HOME.",
        )


def _found(home: Home, uid: int) -> None:
    """Make the directory a pool's; settings, keys and certificates may have been put there before."""
    strangers = sorted(
        entry.name
        for entry in home.path.iterdir()
        if entry.name
        not in {home.settings.name, home.lock.name, home.credentials.name, home.certificates.name}
    )
    if home.credentials.exists():
        _refuse_open(home.credentials, uid)
    if strangers:
        raise HomeRefusedError(
            home.path,
            f"is no pool's directory: it holds {strangers[0]}.  Choose an empty or a new one with KETTLE_HOME.",
        )
    stage = home.path / f".pool.id.{secrets.token_hex(4)}"
    stage.write_text(secrets.token_hex(8) + "\n", encoding="ascii")
    try:
        os.link(stage, home.identity)  # of two who start at once, the first decides
    except FileExistsError:
        pass
    finally:
        stage.unlink()


def make_run(home: Home) -> Path:
    """A fresh directory for sockets, with a path that is short enough for them."""
    remove_run(home)
    if len(os.fsencode(home.path)) + len(_LONGEST_SOCKET) <= _SOCKET_PATH_BYTES:
        home.run.mkdir(mode=0o700)
        return home.run
    short = Path(tempfile.mkdtemp(prefix=_RUN_PREFIX, dir="/tmp"))
    home.run.symlink_to(short)
    return short


def remove_run(home: Home) -> None:
    """Remove the sockets, wherever they are."""
    if home.run.is_symlink():
        target = home.run.readlink()
        if target.name.startswith(_RUN_PREFIX):
            shutil.rmtree(target, ignore_errors=True)
        home.run.unlink()
    elif home.run.exists():
        shutil.rmtree(home.run)
