"""
Tokens of the pool's own iam: it is asked itself who shows one, because it withdraws tokens, ends sessions and bans people, and a signature
tells nothing of that.  It is not asked about what it has not signed, which anybody can invent.
"""

import asyncio
import hashlib
import time
from collections import OrderedDict
from collections.abc import Callable
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

from kettle.auth.tokens.checking.parsing import ParsedToken
from kettle.auth.tokens.checking.verification import check_header, check_signature
from kettle.auth.tokens.keys.discovery import FetchError
from kettle.auth.tokens.keys.key_cache import KeyCache
from kettle.auth.tokens.verified import TokenCode, TokenError
from kettle.client import ClientError
from kettle.client.connections.credentials import CredentialRefusedError, Holder, asked
from kettle.client.connections.pool_file import PoolFile
from kettle.client.iam_http import IamAddress, IamHttp, trusting
from kettle_services.gateway.rest.refusals import RequestRefused
from kettle_wire.rest.problem import ProblemCode

_KEPT_S: Final = 1.0
"""So long an answer counts: what is withdrawn ends so soon."""
_MOST: Final = 10_000
_AT_ONCE: Final = 4
"""Questions; each takes a thread."""
_PATIENCE_S: Final = 10.0

_Answer = asyncio.Task[Holder]


class OwnIam:
    """Asks it."""

    def __init__(self, home: Path) -> None:
        """`home`: the pool's directory, whose file says where the iam is."""
        self._home = home
        self._ca = ""
        self._keys = KeyCache(_Documents(lambda: self._ca))
        self._answers: OrderedDict[bytes, tuple[float, _Answer]] = OrderedDict()
        self._asking = asyncio.Semaphore(_AT_ONCE)

    async def pool(self) -> PoolFile | None:
        """The pool, if it has an iam."""
        try:
            pool = await asyncio.to_thread(PoolFile.load, self._home)
        except ClientError:
            return None  # no file: nobody knows where an iam is
        return pool if pool.iam_url else None

    async def holder(self, pool: PoolFile, token: str, own: ParsedToken | None = None) -> Holder:
        """
        Who shows a token that the pool's iam takes, and with which levels; `own`: the same token, if it says that iam has signed it.

        Raises RequestRefused: the iam has not signed it, does not take it, or does not answer.
        """
        digest = hashlib.sha256(token.encode()).digest()
        until, answer = self._answers.get(digest, (0.0, None))
        if answer is None or (answer.done() and time.monotonic() >= until):
            answer = asyncio.create_task(self._asked(pool, token, own), name="whoami")
            self._answers[digest] = time.monotonic() + _KEPT_S, answer
            self._answers.move_to_end(digest)
            while len(self._answers) > _MOST:
                self._answers.popitem(last=False)
        try:
            return await asyncio.shield(answer)
        except CredentialRefusedError as error:
            raise refusal_of_iam(error) from error
        except TokenError as error:
            if error.code == TokenCode.KEYS_UNAVAILABLE:
                raise _away(str(error)) from error
            raise RequestRefused(401, error.code, str(error)) from error
        except (ClientError, TimeoutError) as error:
            raise _away(str(error) or f"it takes longer than {_PATIENCE_S:g} s") from error

    async def _asked(self, pool: PoolFile, token: str, own: ParsedToken | None) -> Holder:
        async with asyncio.timeout(_PATIENCE_S):
            if own is not None:
                check_header(own.header)
                self._ca = pool.ca
                keys = await self._keys.keys(pool.iam_url, own.header.get("kid"), time.time())
                check_signature(own, pool.iam_url, keys)
            async with self._asking:
                return await asyncio.to_thread(asked, pool, token)


class _Documents:
    """What an iam publishes, at its own address only."""

    def __init__(self, ca: Callable[[], str]) -> None:
        self._ca = ca

    async def document(self, url: str) -> bytes:
        """See `Fetcher`."""
        place = urlsplit(url)
        try:
            iam = IamHttp(IamAddress.of(f"{place.scheme}://{place.netloc}"), trusting(self._ca()))
            return await asyncio.to_thread(iam.get, place.path)
        except (ClientError, OSError) as error:
            raise FetchError(str(error)) from error


def refusal_of_iam(error: CredentialRefusedError) -> RequestRefused:
    """How a request is refused whose credential the pool's iam does not take."""
    if not error.code.startswith(("token.", "user.")):
        return _away(str(error))
    return RequestRefused(401 if error.code.startswith("token.") else 403, error.code, str(error))


def _away(why: str) -> RequestRefused:
    return RequestRefused(
        503,
        ProblemCode.UNAVAILABLE,
        f"the pool's iam, which says whether this token is still good, cannot be asked: {why}",
        retry_after=5,
    )
