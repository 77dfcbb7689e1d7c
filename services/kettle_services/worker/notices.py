"""
Looks for what is announced outside of the pool: that the machine will be taken away.  Providers of virtual machines say so at an
address of their own, sites write a file.
"""

import asyncio
import logging
from pathlib import Path
from typing import Final

import aiohttp

from kettle_wire.commands.scaler import Notice
from kettle_wire.examination import Notices

_log: Final = logging.getLogger(__name__)
_LIMIT: Final = aiohttp.ClientTimeout(total=5.0)
_LARGEST: Final = 4096
_TOLD: Final = 200
_FOUND: Final = 200
_TOKEN: Final = "X-aws-ec2-metadata-token"  # noqa: S105 - the name of a header
_TOKEN_LIFE: Final = {"X-aws-ec2-metadata-token-ttl-seconds": "60"}


async def awaited(told: Notices) -> Notice:
    """Wait until one is there."""
    async with aiohttp.ClientSession(timeout=_LIMIT) as http:
        while True:
            if told.file and (found := await asyncio.to_thread(_file, told)) is not None:
                return found
            if told.url and (found := await _address(told, http)) is not None:
                return found
            await asyncio.sleep(told.interval)


def _file(told: Notices) -> Notice | None:
    try:
        said = Path(told.file).read_bytes()[:_LARGEST]
    except FileNotFoundError:
        return None
    except OSError as error:  # it is there, and not for us to read
        return Notice(kind="file", words=f"{told.file} is there ({error.strerror})", within=told.warning)
    return Notice(kind="file", words=_words(said) or f"{told.file} is there", within=told.warning)


async def _address(told: Notices, http: aiohttp.ClientSession) -> Notice | None:
    """An address that does not answer announces nothing."""
    headers = dict(told.headers)
    try:
        if told.token_url:
            async with http.put(told.token_url, headers=_TOKEN_LIFE) as answer:
                headers[_TOKEN] = (await answer.content.read(_LARGEST)).decode("ascii", errors="replace")
        async with http.get(told.url, headers=headers, allow_redirects=False) as answer:
            said = await answer.content.read(_LARGEST)
            if answer.status != _FOUND or told.says.encode() not in said:
                return None
    except (aiohttp.ClientError, TimeoutError) as error:
        _log.debug("no notices can be asked for: %s", error)
        return None
    return Notice(kind="url", words=_words(said) or "it is announced", within=told.warning)


def _words(said: bytes) -> str:
    return " ".join(said.decode(errors="replace").split())[:_TOLD]
