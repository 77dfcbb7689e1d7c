"""
Where jobs' files are worked on: in a few threads of their own, so that a disk that hangs keeps nobody else waiting.
"""

import asyncio
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Final, TypeVar

T = TypeVar("T")
_THREADS: Final = 4


class FileWork:
    """For all jobs of a shadow; no more than `most_open` files are open at once."""

    def __init__(self, most_open: int) -> None:
        self.room: Final = threading.BoundedSemaphore(most_open)
        self._threads = ThreadPoolExecutor(_THREADS, thread_name_prefix="chirp")

    async def do(self, work: Callable[[], T]) -> T:
        """The result of some work that blocks; raises what it raises, and RuntimeError after `close`."""
        return await asyncio.get_running_loop().run_in_executor(self._threads, work)

    def close(self) -> None:
        """Begin nothing any more; waits for nobody."""
        self._threads.shutdown(wait=False, cancel_futures=True)
