"""
Tokens of the pool's own iam: it is asked itself who shows one, because it withdraws tokens, ends sessions and bans people, and a signature
tells nothing of that.
"""

import asyncio
import hashlib
import time
from collections import OrderedDict
from pathlib import Path
from typing import Final

from kettle.client import ClientError
from kettle.client.connections.credentials import CredentialRefusedError, Holder, asked
from kettle.client.connections.pool_file import PoolFile
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
        self._answers: OrderedDict[bytes, tuple[float, _Answer]] = OrderedDict()
        self._asking = asyncio.Semaphore(_AT_ONCE)

    async def pool(self) -> PoolFile | None:
        """The pool, if it has an iam."""
        try:
            pool = await asyncio.to_thread(PoolFile.load, self._home)
        except ClientError:
            return None  # no file: nobody knows where an iam is
        return pool if pool.iam_url else None

    async def holder(self, pool: PoolFile, token: str) -> Holder:
        """
        Who shows a token that the pool's iam takes, and with which levels.

        Raises RequestRefused: the iam does not take it, or does not answer.
        """
        digest = hashlib.sha256(token.encode()).digest()
        until, answer = self._answers.get(digest, (0.0, None))
        if answer is None or (answer.done() and time.monotonic() >= until):
            answer = asyncio.create_task(self._asked(pool, token), name="whoami")
            self._answers[digest] = time.monotonic() + _KEPT_S, answer
            self._answers.move_to_end(digest)
            while len(self._answers) > _MOST:
                self._answers.popitem(last=False)
        try:
            return await asyncio.shield(answer)
        except CredentialRefusedError as error:
            raise refusal_of_iam(error) from error
        except (ClientError, TimeoutError) as error:
            raise _away(str(error) or f"it takes longer than {_PATIENCE_S:g} s") from error

    async def _asked(self, pool: PoolFile, token: str) -> Holder:
        async with asyncio.timeout(_PATIENCE_S), self._asking:
            return await asyncio.to_thread(asked, pool, token)


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
