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
from kettle.client.connections.iam_http import ask
from kettle.client.connections.pool_file import FILE, PoolFile
from kettle.client.errors import PoolNotFoundError
from kettle_wire.way_in import WAY_IN, WayIn

_FRESH_S: Final = 86_400.0
"""After so long the iam is asked again."""


def pool_at(url: str, home: Path, *, again: bool = False) -> PoolFile:
    """
    The pool whose iam is at the address; `again`: it is asked, whatever is known.

    Raises:
        PoolNotFoundError: there is none.
    """
    address = url.rstrip("/")
    directory = home / "pools" / hashlib.sha256(address.encode()).hexdigest()[:16]
    if not again and (known := _known(directory)) is not None:
        return known
    answer = ask(f"{address}{WAY_IN}")
    try:
        said = msgspec.json.decode(answer.body, type=WayIn)
    except msgspec.MsgspecError as error:
        raise PoolNotFoundError(f"{address} is no address of a pool's iam: it has no {WAY_IN}") from error
    private_directory(directory)
    return _saved(said, address, directory)


def _known(directory: Path) -> PoolFile | None:
    try:
        if time.time() - (directory / FILE).stat().st_mtime > _FRESH_S:
            return None
        return PoolFile.load(directory)
    except (FileNotFoundError, PoolNotFoundError):
        return None


def _saved(said: WayIn, address: str, directory: Path) -> PoolFile:
    def kept(name: str, content: str) -> str:
        return str(write_private(directory / name, content)) if content else ""

    pool = PoolFile(
        pool=said.pool,
        nats_url=said.nats_url,
        ca=kept("ca.pem", said.ca),
        iam_url=address,
        sentinel=kept("sentinel.creds", said.sentinel),
        issuers=(said.iam, *said.issuers),
        trust_domain=said.trust_domain,
    )
    pool.save(directory)
    return pool
