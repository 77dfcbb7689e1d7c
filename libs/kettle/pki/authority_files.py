"""
A trial authority in a directory: enough for a site that has none, and for tests.

    ca.pem      the authority's certificate: everybody who connects gets it
    ca.key      its key: its holder can be any server of the pool; nobody but the administrator reads it
    NAME.pem    the certificate of a server or client
    NAME.key    its key

Files are replaced by renaming, so that who reads one gets the old or the new one, whole.
"""

import os
import re
import secrets
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from typing import Final

import msgspec

from kettle.pki.certificates import (
    AUTHORITY_DAYS,
    HOLDER_DAYS,
    CertificateError,
    Facts,
    HolderKind,
    Made,
    facts,
    issue,
    load,
    make_authority,
)

AUTHORITY: Final = "ca"
_FILE_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._@-]*")
_HOST: Final = re.compile(
    r"(\*\.)?[A-Za-z0-9_]([A-Za-z0-9_-]*[A-Za-z0-9_])?(\.[A-Za-z0-9_]([A-Za-z0-9_-]*[A-Za-z0-9_])?)*"
)


class Kept(msgspec.Struct, frozen=True, kw_only=True):
    """A certificate in the directory."""

    name: str
    certificate: Path
    key: Path
    facts: Facts


class AuthorityFiles:
    """The authority of one directory.  All methods raise CertificateError."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory

    def make(self, name: str, *, now: datetime, days: int = AUTHORITY_DAYS) -> Kept:
        """Make the directory and a new authority in it; one that is there already is never replaced."""
        for path in self._paths(AUTHORITY):
            if path.exists():
                raise CertificateError(
                    f"{path} exists: show the authority with kettle pki show, or choose another directory"
                )
        try:
            self.directory.mkdir(mode=0o755, parents=True, exist_ok=True)
        except OSError as error:
            raise CertificateError(f"{self.directory} cannot be made: {error.strerror}") from error
        return self._keep(AUTHORITY, make_authority(name, now=now, days=days))

    def issue(
        self,
        names: Sequence[str],
        kind: HolderKind,
        *,
        now: datetime,
        days: int = HOLDER_DAYS,
    ) -> Kept:
        """A certificate for these names and addresses, in files called by the first one."""
        authority = self._authority()
        name = self._file_name(names, kind)
        if self._paths(name)[0].exists():
            raise CertificateError(
                f"{self._paths(name)[0]} exists: prolong it with kettle pki renew {name}, or remove it to have other names in it"
            )
        return self._keep(name, issue(authority, names, kind, now=now, days=days))

    def renew(self, name: str, *, now: datetime, days: int | None = None) -> Kept:
        """
        Replace a certificate by one with the same names and key that is valid from now on, for as long as the former was.

        The key stays, so that one rename replaces all, and who reads the files at that moment finds two that fit.
        """
        former = self.kept(name)
        if former.facts.kind == "authority":
            raise CertificateError(
                "an authority is not renewed but replaced: make a new one in another directory, and let clients trust both "
                "files, one behind the other in ca.pem, until all servers have new certificates"
            )
        span = days or max((former.facts.ends - former.facts.begins).days, 1)
        names = former.facts.names or (former.facts.subject,)
        made = issue(self._authority(), names, former.facts.kind, now=now, days=span, key=_read(former.key))
        _write(former.certificate, made.certificate, 0o644)
        return self.kept(name)

    def kept(self, name: str) -> Kept:
        """One of the certificates."""
        certificate, _ = self._paths(name)
        if not certificate.exists():
            known = ", ".join(path.stem for path in sorted(self.directory.glob("*.pem"))) or "none"
            raise CertificateError(f"there is no certificate {name} in {self.directory}; there are: {known}")
        return of_file(certificate)

    def all(self) -> list[Kept]:
        """The authority first, then the others by their names."""
        names = [path.stem for path in sorted(self.directory.glob("*.pem"))]
        if AUTHORITY not in names:
            raise CertificateError(self._nothing())
        return [self.kept(name) for name in sorted(names, key=lambda name: (name != AUTHORITY, name))]

    def _authority(self) -> Made:
        certificate, key = self._paths(AUTHORITY)
        if not certificate.exists():
            raise CertificateError(self._nothing())
        return Made(_read(certificate), _read(key))

    def _nothing(self) -> str:
        return f"there is no authority in {self.directory}: make one with kettle pki init --directory {self.directory}"

    def _file_name(self, names: Sequence[str], kind: str) -> str:
        for name in names:
            if kind != "client" and not (_HOST.fullmatch(name) or ":" in name):
                raise CertificateError(f"'{name}' is neither the name of a host nor an address")
        name = names[0].replace(":", "-").replace("*", "any")
        if name == AUTHORITY or not _FILE_NAME.fullmatch(name):
            raise CertificateError(
                f"'{names[0]}' cannot be the name of a file: letters, digits and . _ @ -, and not {AUTHORITY}"
            )
        return name

    def _paths(self, name: str) -> tuple[Path, Path]:
        return self.directory / f"{name}.pem", self.directory / f"{name}.key"

    def _keep(self, name: str, made: Made) -> Kept:
        certificate, key = self._paths(name)
        _write(key, made.key, 0o600)
        _write(certificate, made.certificate, 0o644)
        return self.kept(name)


def of_file(path: Path) -> Kept:
    """The first certificate of any file; its key may be anywhere.  Raises CertificateError."""
    found = facts(load(_read(path), str(path)))
    return Kept(name=path.stem, certificate=path, key=path.with_suffix(".key"), facts=found)


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise CertificateError(f"{path} cannot be read: {error.strerror}") from error


def _write(path: Path, data: bytes, mode: int) -> None:
    stage = path.with_name(f".{path.name}.{secrets.token_hex(4)}")
    try:
        fd = os.open(stage, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, mode)
        try:
            with os.fdopen(fd, "wb") as file:
                os.fchmod(fd, mode)
                file.write(data)
                file.flush()
                os.fsync(fd)
            stage.replace(path)
        except OSError:
            stage.unlink(missing_ok=True)
            raise
    except OSError as error:
        raise CertificateError(f"{path} cannot be written: {error.strerror}") from error
