"""
A bucket of S3 in which a gateway keeps what people and jobs send it.

Objects have random names there, and are never changed.  Who may fetch one is given an address that the bucket's service accepts
for some minutes; the key of the bucket stays here.
"""

import time
from pathlib import Path
from typing import Final

import aiohttp

from kettle.runtime import SettingsError
from kettle.transfer.s3_signatures import Key, place, signed
from kettle_services.gateway.settings import GatewaySettings

_FETCHED_WITHIN_S: Final = 600
"""For the beginning of a transfer; its end may come later."""
_ASKED_WITHIN_S: Final = 60.0
_GONE: Final = frozenset({200, 204, 404})
_SAID: Final = 300
"""Characters of what the service says that are told."""


class BucketError(Exception):
    """The service of the bucket did not do what it was asked for."""


class Bucket:
    """Writes, removes and gives addresses."""

    def __init__(
        self, url: str, key: Key, session: aiohttp.ClientSession, *, region: str, endpoint: str
    ) -> None:
        """
        `url`: the bucket and how the names of all objects begin, as `s3://bucket/kettle`.  Raises ValueError: it is no such URL.
        """
        self._url = url.rstrip("/")
        self._key = key
        self._session = session
        self._region = region
        self._endpoint = endpoint
        self._signed("GET", "any", _FETCHED_WITHIN_S)

    async def put(self, name: str, path: Path, size: int) -> None:
        """
        Write an object, which has the bytes of this file.

        Raises BucketError.
        """
        headers = {"Content-Type": "application/octet-stream", "Content-Length": str(size)}
        no_end = aiohttp.ClientTimeout(total=None, sock_connect=_ASKED_WITHIN_S, sock_read=_ASKED_WITHIN_S)
        url = self._signed("PUT", name, _FETCHED_WITHIN_S)
        try:
            with path.open("rb") as file:
                async with self._session.put(url, data=file, headers=headers, timeout=no_end) as answer:
                    if answer.status != 200:
                        raise BucketError(await _said(answer))
        except (aiohttp.ClientError, TimeoutError) as error:
            raise BucketError(f"the bucket cannot be reached: {type(error).__name__} {error}") from error

    async def remove(self, name: str) -> None:
        """
        Remove an object, whether or not it is there.

        Raises BucketError.
        """
        timeout = aiohttp.ClientTimeout(total=_ASKED_WITHIN_S)
        url = self._signed("DELETE", name, int(_ASKED_WITHIN_S))
        try:
            async with self._session.delete(url, timeout=timeout) as answer:
                if answer.status not in _GONE:
                    raise BucketError(await _said(answer))
        except (aiohttp.ClientError, TimeoutError) as error:
            raise BucketError(f"the bucket cannot be reached: {type(error).__name__} {error}") from error

    def address(self, name: str) -> str:
        """Where an object is fetched within the next minutes."""
        return self._signed("GET", name, _FETCHED_WITHIN_S)

    def _signed(self, method: str, name: str, lifetime: int) -> str:
        there = place(f"{self._url}/{name}", region=self._region, endpoint=self._endpoint)
        return signed(there, method, self._key, at=time.time(), lifetime=lifetime)


async def _said(answer: aiohttp.ClientResponse) -> str:
    text = (await answer.content.read(_SAID)).decode("utf-8", "replace")
    return f"the bucket answers {answer.status} {answer.reason}: {text}"


def key_of(settings: GatewaySettings) -> Key:
    """
    What the bucket's service knows the gateway by.  Reads the disk.

    Raises SettingsError: it cannot be read, or others can read it, too.
    """
    path = Path(settings.prominence_bucket_key)
    try:
        mode, words = path.stat().st_mode, path.read_text().split()
    except (OSError, UnicodeDecodeError) as error:
        raise SettingsError(f"prominence_bucket_key: {path} cannot be read: {error}") from error
    if mode & 0o077:
        raise SettingsError(f"prominence_bucket_key: others may read {path}: chmod 600 {path}")
    if len(words) != 2:
        raise SettingsError(
            f"prominence_bucket_key: {path} has the id of an access key on its first line, and its secret on the second"
        )
    return Key(*words)


def bucket_of(settings: GatewaySettings, session: aiohttp.ClientSession) -> Bucket:
    """
    The bucket that the settings name.  Reads the disk.

    Raises SettingsError.
    """
    try:
        return Bucket(
            settings.prominence_bucket,
            key_of(settings),
            session,
            region=settings.prominence_bucket_region,
            endpoint=settings.prominence_bucket_endpoint,
        )
    except ValueError as error:
        raise SettingsError(f"prominence_bucket: {error}") from error
