"""
A pool by the address of its iam alone: what that one says to everybody is kept in the person's directory.

    <home>/pools/<address>/pool.json       as of a pool on this machine
    <home>/pools/<address>/sentinel.creds  what is shown to the bus together with a token
    <home>/pools/<address>/ca.pem          by which the bus is known
"""

import hashlib
import time
from pathlib import Path
from typing import Final

import msgspec

from kettle.auth.private_files import private_directory, write_private
from kettle.client.connections.pool_file import FILE, PoolFile
from kettle.client.errors import PoolNotFoundError, PoolUnreachableError
from kettle.client.iam_http import IamAddress, IamHttp, trusting
from kettle_wire.way_in import WAY_IN, WayIn

_FRESH_S: Final = 86_400.0
"""After so long the iam is asked again."""


def pool_at(url: str, home: Path, ca: str = "") -> PoolFile:
    """
    The pool whose iam is at the address; what is known of it for less than a day is not asked again, and what is older will do
    while it does not answer.  `ca` is as in `asked`.

    Raises:
        PoolNotFoundError: there is none.
        PoolUnreachableError: it does not answer, and nothing is known of it.
    """
    directory = _directory(url, home)
    try:
        known = PoolFile.load(directory)
        fresh = time.time() - (directory / FILE).stat().st_mtime < _FRESH_S
    except (FileNotFoundError, PoolNotFoundError):
        return kept(asked(url, ca), url, home)
    if fresh:
        return known
    try:
        return kept(asked(url, ca or known.ca), url, home)
    except PoolUnreachableError:
        return known


def asked(url: str, ca: str = "") -> WayIn:
    """
    What an iam says; `ca` is the path of the certificate of its authority, unless the system knows that.
    """
    _, body = IamHttp(IamAddress.of(url), trusting(ca)).ask("GET", WAY_IN, {})
    try:
        return msgspec.json.decode(body, type=WayIn)
    except msgspec.MsgspecError as error:
        raise PoolNotFoundError(f"{url} is no address of a pool's iam: it has no {WAY_IN}") from error


def _directory(url: str, home: Path) -> Path:
    return home / "pools" / hashlib.sha256(url.rstrip("/").encode()).hexdigest()[:16]


def kept(said: WayIn, url: str, home: Path) -> PoolFile:
    """Write down what an iam has said."""
    directory = private_directory(_directory(url, home))

    def written(name: str, content: str) -> str:
        return str(write_private(directory / name, content)) if content else ""

    pool = PoolFile(
        pool=said.pool,
        nats_url=said.nats_url,
        ca=written("ca.pem", said.ca),
        iam_url=url.rstrip("/"),
        sentinel=written("sentinel.creds", said.sentinel),
        issuers=(said.iam, *said.issuers),
        trust_domain=said.trust_domain,
    )
    pool.save(directory)
    return pool
