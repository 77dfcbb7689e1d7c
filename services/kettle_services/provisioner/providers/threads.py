"""Libraries that block, called in threads of which there are only so many."""

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Final, ParamSpec, TypeVar

_P = ParamSpec("_P")
_T = TypeVar("_T")


class Threads:
    """
    A call that is cancelled goes on in its thread, and nobody hears how it ended: what it was to make is in doubt.
    """

    def __init__(self, most: int, name: str) -> None:
        self._pool: Final = ThreadPoolExecutor(most, thread_name_prefix=name)

    async def call(self, function: Callable[_P, _T], *arguments: _P.args, **named: _P.kwargs) -> _T:
        """Its result."""
        return await asyncio.get_running_loop().run_in_executor(
            self._pool, partial(function, *arguments, **named)
        )

    def close(self) -> None:
        """Begin nothing more; what goes on is not waited for."""
        self._pool.shutdown(wait=False, cancel_futures=True)
