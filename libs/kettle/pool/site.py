"""
What a server of a pool of many machines needs beyond a personal pool: names and ports by which it is reached, an authority
with a certificate for them, and the settings of its services.

    <home>/pki/           the authority, and the server's certificate
    <home>/kettle.toml    the settings; what is there already stays
"""

from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from typing import Final

import msgspec

from kettle.auth.private_files import write_private
from kettle.pki.authority_files import AuthorityFiles
from kettle.pki.certificates import CertificateError
from kettle.pool.home import Home
from kettle.pool.personal_settings import Tables, Value
from kettle.pool.settings_file import SettingsFileError, merged

DAEMONS: Final = ("collector", "negotiator", "accounting", "gateway", "iam")
"""What a server runs: queues are on access points, and jobs on machines."""
BUS_PORT: Final = 4222
IAM_PORT: Final = 9643
_HEAD: Final = """\
# The settings of a pool's server.  kettle site init has begun this file; it is yours, and what is there is never changed by it.
"""
_ADMINISTRATORS: Final = ("master", "iam", "negotiator")
_THEIRS: Final = frozenset({"administrators", "daemon_list"})
"""What may say something else than a new site has."""


class SiteError(Exception):
    """The site cannot be set up; the message is a sentence."""


class Site(msgspec.Struct, frozen=True, kw_only=True):
    """What the administrator says."""

    pool: str
    address: str
    """The name or address by which the server is reached, and on which it listens."""
    more_names: Sequence[str] = ()
    """Further names and addresses for the certificate."""
    administrators: Sequence[str] = ()
    """Login names of those who run the pool."""
    bus_port: int = BUS_PORT
    iam_port: int = IAM_PORT


class Written(msgspec.Struct, frozen=True, kw_only=True):
    """What was written, or would be."""

    path: Path
    what: str
    text: str = ""
    """Of settings."""


def set_up(site: Site, home: Path, *, now: datetime, dry_run: bool = False) -> list[Written]:
    """
    Write what is missing; nothing, if nothing is.

    Raises:
        SiteError: a file says something else, or cannot be written.
    """
    place = Home(home.absolute())
    files = AuthorityFiles(place.certificates)
    certificate = place.certificates / f"{site.address}.pem"
    written: list[Written] = []
    try:
        text, was = _settings(site, place, certificate)
        if not dry_run:
            place.path.mkdir(mode=0o700, parents=True, exist_ok=True)  # what is above it is nobody's secret
        if not (place.certificates / "ca.pem").exists():
            if not dry_run:
                files.make(site.pool, now=now)
            written.append(Written(path=place.certificates / "ca.pem", what="the pool's authority"))
        if not certificate.exists():
            if not dry_run:
                files.issue(_names(site), "server", now=now)
            written.append(Written(path=certificate, what="the server's certificate"))
        if text != was:
            if not dry_run:
                write_private(place.settings, text)
            written.append(Written(path=place.settings, what="the settings", text=text))
    except (SettingsFileError, CertificateError) as error:
        raise SiteError(str(error)) from error
    except (OSError, UnicodeDecodeError) as error:
        said = getattr(error, "strerror", "") or str(error)
        raise SiteError(f"{getattr(error, 'filename', '') or home} cannot be used: {said}") from error
    return written


def _names(site: Site) -> list[str]:
    return list(dict.fromkeys([site.address, *site.more_names]))


def _settings(site: Site, place: Home, certificate: Path) -> tuple[str, str]:
    """The text of the file, and as it was."""
    was = place.settings.read_text(encoding="utf-8") if place.settings.exists() else ""
    text, _ = merged(place.settings, was or _HEAD, _wanted(site, place, certificate), {}, theirs=_THEIRS)
    return text, was


def _wanted(site: Site, place: Home, certificate: Path) -> Tables:
    bus = f"{site.address}:{site.bus_port}"
    ca, key = str(place.certificates / "ca.pem"), str(certificate.with_suffix(".key"))
    tables: dict[str, dict[str, Value]] = {
        "kettle": {"pool": site.pool, "nats_ca": ca},
        "master": {
            "nats_listen": bus,
            "nats_certificate": str(certificate),
            "nats_key": key,
            "daemon_list": list(DAEMONS),
        },
        "iam": {
            "url": f"https://{site.address}:{site.iam_port}",
            "http_host": site.address,
            "http_port": site.iam_port,
            "certificate": str(certificate),
            "certificate_key": key,
            "ca_certificate": ca,
            "bus_url": f"tls://{bus}",
        },
    }
    if site.administrators:
        for service in _ADMINISTRATORS:
            tables.setdefault(service, {})["administrators"] = list(site.administrators)
    return tables
