"""
As whom a server runs.

Started by an ordinary user, it runs as that user.  Started by root it runs as a number that belongs to no account:
nobody else's process, no job and no other daemon can then signal it or read its files.  PostgreSQL refuses to run as
root anyway.
"""

import os
import pwd
import shutil
import tempfile
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import msgspec

from kettle.embedded.errors import EmbeddedError

# Neither Debian's policy nor systemd's allocation of dynamic users assigns 65520 to 65533.
POSTGRES_UID: Final = 65521
NATS_UID: Final = 65522

_CACHE: Final = Path("/var/cache/kettle")


class Account(msgspec.Struct, frozen=True):
    """A user and group by number; `changed` if they are not our own."""

    uid: int
    gid: int
    changed: bool

    def own(self, *paths: Path, below: bool = True) -> None:
        """Make the paths, and what is below them, belong to the account."""
        if not self.changed:
            return
        for path in paths:
            for each in _paths(path) if below else (str(path),):
                os.chown(each, self.uid, self.gid, follow_symlinks=False)

    def options(self) -> list[str]:
        """The options for `setpriv`."""
        if not self.changed:
            return ["--no-new-privs"]
        return ["--no-new-privs", f"--reuid={self.uid}", f"--regid={self.gid}", "--clear-groups"]


def server_account(uid: int) -> Account:
    """The account of a server: `uid` if we are root, else our own."""
    if os.geteuid() == 0:
        return Account(uid, uid, changed=True)
    return Account(os.geteuid(), os.getegid(), changed=False)


def named_account(server: Account) -> Account:
    """
    An account that has a name, for `initdb`, which insists on one; what it makes is given away afterwards.

    Raises:
        EmbeddedError: none is known on this machine.
    """
    if not server.changed:
        return server
    for name in ("nobody", "daemon", "bin"):
        try:
            entry = pwd.getpwnam(name)
        except KeyError:
            continue
        return Account(entry.pw_uid, entry.pw_gid, changed=True)
    raise EmbeddedError(
        "Not one of the accounts nobody, daemon and bin exists: initdb needs a name to run under."
    )


def nameless() -> bool:
    """Whether we ourselves run as a number without a name, as on some container platforms."""
    try:
        pwd.getpwuid(os.geteuid())
    except KeyError:
        return True
    return False


@contextmanager
def seen_by(account: Account, *paths: Path) -> Generator[tuple[list[Path], list[int]]]:
    """
    The paths under which a server of the account can reach some things, and the descriptors that it needs for it.

    They may lie below a directory that the account cannot enter, such as the home of root or a private temporary one.  An open
    descriptor leads to them all the same, and opens nothing to anybody else.
    """
    fds: list[int] = []
    seen: list[Path] = []
    try:
        for path in paths:
            if not account.changed or _open_to_all(path):
                seen.append(path)
            else:
                fds.append(os.open(path, os.O_PATH | os.O_CLOEXEC))
                seen.append(Path(f"/proc/self/fd/{fds[-1]}"))
        yield seen, fds
    finally:
        for fd in fds:
            os.close(fd)


def reachable_tree(binaries: Path, account: Account) -> Path:
    """
    The `bin` directory of a PostgreSQL tree, as the account can reach it.

    A tree below the home of root cannot be reached by anybody else, and opening that is out of the question, so what the
    server needs of the tree is copied, once per version, to where programs keep what can be made again.
    """
    if not account.changed or _open_to_all(binaries / "postgres"):
        return binaries
    stamp = (binaries / "postgres").stat()
    root = binaries.parent
    copy = _CACHE / f"postgresql-package-{stamp.st_size:x}-{stamp.st_mtime_ns:x}"
    if not copy.is_dir():
        _CACHE.mkdir(parents=True, exist_ok=True)
        _CACHE.chmod(0o755)
        stage = Path(tempfile.mkdtemp(dir=_CACHE, prefix=".copy-"))
        try:
            _copy_tree(binaries, stage)
            stage.replace(copy)
        except OSError:
            shutil.rmtree(stage, ignore_errors=True)
            if not copy.is_dir():  # else: another process was faster
                raise
    return copy / root.parent.name / root.name / "bin"


def _copy_tree(binaries: Path, stage: Path) -> None:
    root = binaries.parent
    target = stage / root.parent.name / root.name
    (target / "bin").mkdir(parents=True)
    for program in ("postgres", "initdb"):
        shutil.copy2(binaries / program, target / "bin" / program)
    for part in ("lib", "share"):
        if (root / part).is_dir():
            shutil.copytree(
                root / part, target / part, symlinks=True, ignore=shutil.ignore_patterns("*.a", "*.la")
            )
    # Libraries that a wheel brings beside its package are found from the programs by their place.
    libraries = root.parent.with_name(f"{root.parent.name}.libs")
    if libraries.is_dir():
        shutil.copytree(libraries, stage / libraries.name, symlinks=True)
    for each in map(Path, _paths(stage)):
        if not each.is_symlink():
            each.chmod(0o755 if each.is_dir() or each.parent.name == "bin" else 0o644)


def _open_to_all(program: Path) -> bool:
    path = program.resolve()
    return path.stat().st_mode & 0o005 == 0o005 and all(
        parent.stat().st_mode & 0o001 for parent in path.parents
    )


def _paths(path: Path) -> Iterator[str]:
    """It and all below it, as texts: a database has a thousand files."""
    yield str(path)
    for directory, directories, files in os.walk(path):
        for name in (*directories, *files):
            yield f"{directory}/{name}"
