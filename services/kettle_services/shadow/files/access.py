"""
Files that jobs name on the access point, used with the rights of the jobs' owners and of nobody else.

What a path leads to is looked at by descriptor, so that nobody exchanges it between the look and the deed.  Only regular
files are read and written, none that the kernel makes up, and none that belongs to the pool itself: the pool's
credentials and records lie in a directory of the shadow's account, whose own jobs have no business there either.
"""

import errno
import logging
import os
import stat
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path, PurePosixPath
from typing import Final, TypeVar

from kettle.accounts.rights import Rights, act_as
from kettle_services.shadow.files.path_resolution import followed, real_path, refuse_system

T = TypeVar("T")

_QUIETLY: Final = os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC | os.O_NOFOLLOW
_READ: Final = os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
_PLACE: Final = os.O_PATH | os.O_CLOEXEC
_DIRECTORY: Final = os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_DIRECTORY_MODE: Final = 0o777
_SHOWN: Final = 500
"""Characters of a path in the audit."""

_audit: Final = logging.getLogger("kettle.audit.files")


class OwnFileError(PermissionError):
    """A job names a file of the pool."""

    def __init__(self) -> None:
        super().__init__(errno.EACCES, "it lies in the pool's own directory")


class OutsideError(PermissionError):
    """A job that may use some directories only names a file elsewhere."""

    def __init__(self) -> None:
        super().__init__(errno.EACCES, "the job may use some directories only, and it lies elsewhere")


class FileAccess:
    """
    What one owner's jobs may do to files.

    Everything but `act` and the checks of names is to be called by the work that `act` does.
    """

    def __init__(self, home: Path, *, spools: Sequence[Path] = ()) -> None:
        """
        With the rights of this process.  `spools`: where jobs' own files lie in the pool's directory; they may be read
        there.
        """
        self._home = os.path.realpath(home)
        self._spools = tuple(f"{os.path.realpath(spool)}/" for spool in spools)
        self._owner = ""
        self._rights: Rights | None = None
        self._own: str | None = None
        self._own_names: tuple[str, ...] = ()
        """How paths begin that lead into the job's own directory."""
        self._limits: tuple[tuple[str, ...], ...] = ()
        """Of each group of directories, one has to contain what is used."""
        self.confined = False
        """Whether its job may use nothing but its own directory."""

    def of_owner(self, owner: str, rights: Rights) -> "FileAccess":
        """Access with the rights of somebody else."""
        access = self._copy()
        access._owner, access._rights = owner, rights  # noqa: SLF001 - our own copy
        return access

    def of_job(self, own: Path, readable: Path, *, confined: bool = False) -> "FileAccess":
        """
        Access for a job that has a directory of its own in the pool's, with which it may do what it likes, and something
        that may be read beside it; of the pool's directory it has nothing else, so that no path leads to another's files.
        """
        access = self._copy()
        access._own = f"{os.path.realpath(own)}/"  # noqa: SLF001
        access._own_names = (f"{own}/", access._own)  # noqa: SLF001
        access._spools = (f"{os.path.realpath(readable)}/",)  # noqa: SLF001
        access.confined = confined
        return access

    def limited_to(self, *groups: Sequence[Path]) -> "FileAccess":
        """Limit it to what is below one directory of each group that names any, links followed."""
        access = self._copy()
        access._limits = tuple(  # noqa: SLF001
            tuple(f"{os.path.realpath(each).rstrip('/')}/" for each in group) for group in groups if group
        )
        return access

    @property
    def rights(self) -> Rights | None:
        """With which it is used; None: with our own."""
        return self._rights

    def _copy(self) -> "FileAccess":
        access = FileAccess.__new__(FileAccess)
        access.__dict__.update(self.__dict__)
        return access

    def act(self, what: str, path: object, work: Callable[[], T]) -> T:
        """
        The result of some work that is done with the owner's rights; what is done with others' than our own is audited.

        `what`: a verb for the audit; empty for what follows from an act that was audited.
        """
        if self._rights is None:
            return work()
        if what:
            self.audit(what, path)
        return act_as(self._rights, work)

    def audit(self, what: str, path: object) -> None:
        """Write down what is done with others' rights than our own."""
        rights = self._rights
        if rights is None:
            return
        _audit.info(
            "%s for %s: %s",
            what,
            self._owner,
            ascii(str(path))[:_SHOWN],
            extra={"uid": rights.uid, "gid": rights.gid},
        )

    # -- which files -------------------------------------------------------------------------------------------------

    def refuse_own(self, path: Path, *, but_spool: bool = False) -> None:
        """
        Raises OwnFileError if a path leads, all links followed, into the pool's own directory; OSError if it is none.
        """
        try:
            real = os.path.realpath(path)
        except ValueError as error:
            raise OSError(errno.EINVAL, str(error)) from error
        self._refuse(real, but_spool=but_spool)

    def refuse_own_place(self, place: int, *, but_spool: bool = False) -> None:
        """Check an open file in the same way, no matter where its name leads meanwhile."""
        self._refuse(real_path(place), but_spool=but_spool)

    def _refuse(self, real: str, *, but_spool: bool = False) -> None:
        if self._own is not None and f"{real}/".startswith(self._own):
            return
        if but_spool and real.startswith(self._spools):
            return
        if f"{real}/".startswith(f"{self._home}/"):
            raise OwnFileError
        if self.confined or any(not f"{real}/".startswith(group) for group in self._limits):
            raise OutsideError

    def lies_in(self, path: Path) -> bool:
        """Whether the pool's own directory is this one, or lies in it; raises OSError."""
        return f"{self._home}/".startswith(f"{os.path.realpath(path).rstrip('/')}/")

    # -- places ------------------------------------------------------------------------------------------------------

    @contextmanager
    def found(self, path: str, *, but_spool: bool = False, quick: bool = False) -> Generator[int]:
        """
        What a path leads to, all links followed, as a descriptor that names it and nothing more.

        `quick`: where the rights are our own, leave the steps to the kernel, and look at their end only.
        """
        with self._followed(path, quick=quick) as place:
            self.refuse_own_place(place, but_spool=but_spool)
            yield place

    @contextmanager
    def directory(self, path: str, *, make: bool = False, quick: bool = False) -> Generator[tuple[int, str]]:
        """
        The directory of a path, so that it cannot be exchanged, and the name in it, which no link is followed from; `make`
        directories that are missing.
        """
        whole = PurePosixPath(path)
        if whole.name in {"", ".."}:
            raise OSError(errno.EINVAL, "it has no name of its own")
        with ExitStack() as opened:
            try:
                place = opened.enter_context(self._followed(f"{whole.parent}/", quick=quick))
            except FileNotFoundError:
                if not make or not whole.parent.name:
                    raise
                self._make(str(whole.parent))
                place = opened.enter_context(self._followed(f"{whole.parent}/"))
            real = real_path(place)
            self._refuse(real)
            self._refuse(f"{real.rstrip('/')}/{whole.name}")
            yield place, whole.name

    def _make(self, path: str) -> None:
        with self.directory(path, make=True) as (place, name), suppress(FileExistsError):
            os.mkdir(name, _DIRECTORY_MODE, dir_fd=place)

    @contextmanager
    def _followed(self, path: str, *, quick: bool = False) -> Generator[int]:
        """
        The job's own directory is opened by us: it lies in the pool's, which the owner may not even enter.
        """
        if quick and self._rights is None:
            place = os.open(path, _PLACE)
            try:
                refuse_system(place)
                yield place
            finally:
                os.close(place)
            return
        begin = next((name for name in self._own_names if f"{path}/".startswith(name)), None)
        if begin is None or self._rights is None:
            with followed(path) as place:
                yield place
            return
        base = act_as(None, lambda: os.open(begin, _DIRECTORY))
        try:
            with followed(path[len(begin) :], base) as place:
                yield place
        finally:
            os.close(base)

    @contextmanager
    def listed(self, path: Path) -> Generator[Iterator[os.DirEntry[str]]]:
        """What is in a directory."""
        with ExitStack() as opened:
            with _naming(path):
                place = opened.enter_context(self.found(str(path), but_spool=True, quick=True))
                entries = opened.enter_context(os.scandir(f"/proc/self/fd/{place}"))
            yield entries

    # -- files -------------------------------------------------------------------------------------------------------

    def open_input(self, path: Path) -> int:
        """
        A descriptor of a regular file; raises OSError or, if it is not a path at all, ValueError.

        It is looked at before it is opened, because opening a device may have side effects, and a pipe without a writer
        would block without end.
        """
        with _naming(path), self.found(str(path), but_spool=True, quick=True) as place:
            _refuse_special(os.fstat(place))
            return os.open(f"/proc/self/fd/{place}", _READ)

    def open(self, path: str, flags: int, mode: int, *, quick: bool = False) -> int:
        """
        A descriptor of a regular file, which is made if the flags say so.  Raises OSError or ValueError.
        """
        if flags & os.O_CREAT:
            with self.directory(path, quick=quick) as (directory, name):
                with suppress(FileExistsError):
                    return os.open(name, flags | os.O_EXCL | _QUIETLY, mode, dir_fd=directory)
                if flags & os.O_EXCL:
                    raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST))
        with ExitStack() as opened:
            try:
                place = opened.enter_context(self.found(path, quick=quick))
            except FileNotFoundError:
                with self.directory(
                    path, quick=quick
                ):  # what is not there may be where it must not be asked for
                    raise
            kind = os.fstat(place).st_mode
            if stat.S_ISDIR(kind):
                raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
            if not stat.S_ISREG(kind):
                raise PermissionError(errno.EACCES, "it is not a regular file")
            again = flags & ~(os.O_CREAT | os.O_EXCL) | os.O_CLOEXEC
            return os.open(f"/proc/self/fd/{place}", again)


@contextmanager
def _naming(path: Path) -> Generator[None]:
    """Have the system's errors name a path as a whole, and not a step on the way or a descriptor."""
    try:
        yield
    except OSError as error:
        error.filename = str(path)
        raise


def _refuse_special(status: os.stat_result) -> None:
    if stat.S_ISDIR(status.st_mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
    if not stat.S_ISREG(status.st_mode):
        raise OSError(errno.EINVAL, "it is not a regular file")
