"""One connection to each pool for all threads of a program; it is made when the first question is asked."""

import atexit
import os
import threading
from collections.abc import Callable, Coroutine
from typing import Any, Final, TypeVar

from kettle.bindings.errors import (
    HTCondorIOError,
    HTCondorLocateError,
    HTCondorReplyError,
    HTCondorValueError,
)
from kettle.bindings.param import param
from kettle.client import Client, ClientError, PoolFile, PoolNotFoundError, SyncClient
from kettle.client.connections.condor_config import heed_token_file, pool_of
from kettle.client.connections.locating import locate
from kettle.client.errors import CommandRefusedError
from kettle.submit import SubmitError

T = TypeVar("T")

_connections: Final[dict[tuple[int, PoolFile], SyncClient]] = {}
_lock: Final = threading.Lock()


def pool_here() -> PoolFile:
    """
    The pool that variables or files name.

    Raises:
        HTCondorLocateError: there is none.
    """
    heed_token_file(os.environ)
    try:
        return pool_of(param.knobs)
    except PoolNotFoundError as error:
        raise HTCondorLocateError(f"Unable to locate local daemon: {error}") from error


def pool_at(address: str) -> PoolFile:
    """The pool at an address, HOST:PORT of its bus; the one that is known here, if it is that one."""
    wanted = _plain(address)
    try:
        known = pool_here()
    except HTCondorLocateError:
        known = None
    if known is not None and wanted in {known.pool, *map(_plain, known.nats_url.split(","))}:
        return known
    if ":" not in wanted:
        raise HTCondorLocateError(
            f"there is no pool '{address}' here: write HOST:PORT of its bus, or name its directory in KETTLE_HOME"
        )
    return locate(os.environ, nats_url=f"nats://{wanted}")


def ask(pool: PoolFile, question: Callable[[Client], Coroutine[Any, Any, T]]) -> T:
    """
    What the pool answers; any number of threads may ask at once.

    Raises:
        HTCondorIOError: it does not.
        HTCondorReplyError: it refuses.
        HTCondorValueError: what is asked makes no sense.
    """
    try:
        return _connection(pool).run(question)
    except CommandRefusedError as error:
        raise HTCondorReplyError(str(error)) from error
    except ClientError as error:
        raise HTCondorIOError(str(error)) from error
    except SubmitError as error:
        raise HTCondorValueError(str(error)) from error


def known(pool: PoolFile | None) -> PoolFile:
    """The pool, or the one that is found here."""
    return pool_here() if pool is None else pool


def _connection(pool: PoolFile) -> SyncClient:
    key = (os.getpid(), pool)  # a child that was forked has none of its parent's threads
    with _lock:
        if key not in _connections:
            client = SyncClient(Client.connect(pool=pool))
            _connections[key] = client.__enter__()
        return _connections[key]


@atexit.register
def _close() -> None:
    with _lock:
        mine = [key for key in _connections if key[0] == os.getpid()]
        for key in mine:
            _connections.pop(key).__exit__(None, None, None)


def _plain(address: str) -> str:
    """An address without its scheme, angle brackets and parameters."""
    return address.partition("://")[2].rpartition("@")[2] or address.strip("<>").partition("?")[0]
