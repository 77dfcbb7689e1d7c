"""Signing addresses of objects with the keys of jobs' owners: the keys are read here, and go nowhere else."""

import os
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from kettle.transfer.file_lists import ManifestError, shown
from kettle.transfer.s3_signatures import (
    ACCESS_KEY,
    ENDPOINT,
    REGION,
    SECRET_KEY,
    Key,
    belongs,
    place,
    signed,
)
from kettle.transfer.submit_side_paths import text
from kettle_services.shadow.files.access import FileAccess
from kettle_wire.ads import Ad
from kettle_wire.commands.questions import SignedUrls

_KEY_BYTES: Final = 4096


class Signer:
    """Makes addresses that are good for `lifetime` seconds."""

    def __init__(self, *, lifetime: int) -> None:
        self._lifetime = lifetime

    def sign(self, ad: Ad, urls: Sequence[str], places: FileAccess, *, upload: bool) -> SignedUrls:
        """The addresses of a job's objects, in order, or why there are none.  Reads the disk."""
        try:
            key = Key(_read(ad, ACCESS_KEY, places), _read(ad, SECRET_KEY, places))
            return SignedUrls(urls=[self._signed(ad, url, key, upload=upload) for url in urls])
        except OSError as error:
            named = f" {error.filename}" if isinstance(error.filename, str) else ""
            why = f"the key{named} cannot be read: {error.strerror}"
            return SignedUrls(urls=[], reason=why, errno=error.errno or 0)
        except ValueError as error:
            return SignedUrls(urls=[], reason=str(error))

    def _signed(self, ad: Ad, url: str, key: Key, *, upload: bool) -> str:
        if not _belongs(ad, url, upload=upload):
            raise ValueError(f"the job does not say that it {'writes' if upload else 'reads'} {shown(url)}")
        where = place(url, region=text(ad, REGION), endpoint=text(ad, ENDPOINT))
        return signed(where, "PUT" if upload else "GET", key, at=time.time(), lifetime=self._lifetime)


def _read(ad: Ad, attribute: str, places: FileAccess) -> str:
    """One line of a file that the job names."""
    name = text(ad, attribute)
    if not name:
        raise ValueError(f"the job has no {attribute}, which names the file of its key")
    path = Path(text(ad, "Iwd", "/")) / name
    try:
        fd = places.act("read", path, lambda: places.open_input(path))
    except OSError as error:
        raise OSError(error.errno or 0, error.strerror or str(error), str(path)) from error
    with os.fdopen(fd, "rb") as file:
        said = file.read(_KEY_BYTES).decode("ascii", errors="replace").split()
    if len(said) != 1:
        raise ValueError(f"{path} does not hold one word, the key")
    return said[0]


def _belongs(ad: Ad, url: str, *, upload: bool) -> bool:
    try:
        return belongs(ad, url, upload=upload)
    except ManifestError:
        return False
