"""Which jobs of a cluster have left the queue."""

from collections.abc import Iterable, Iterator
from typing import Final

from kettle_wire.jobs import JobId

PAGE: Final = 1024
"""The number of jobs in one row of the working set, which is written again for each of them that leaves."""
_BYTES: Final = PAGE // 8
_FULL: Final = (1 << PAGE) - 1


class DepartedJobs:
    """Numbers of jobs that have left, as bits in pages: whatever their order, each costs the same."""

    def __init__(self) -> None:
        self._pages: dict[int, int] = {}
        self._count = 0
        self.rows: Final[set[str]] = set()
        """The rows of the working set that tell of them, by the end of their names."""

    def add(self, proc: int) -> None:
        """One more has left."""
        page, place = divmod(proc, PAGE)
        self._merge(page, 1 << place)

    def _merge(self, page: int, bits: int) -> None:
        before = self._pages.get(page, 0)
        self._pages[page] = before | bits
        self._count += (bits & ~before).bit_count()

    def __contains__(self, proc: int) -> bool:
        page, place = divmod(proc, PAGE)
        return bool(self._pages.get(page, 0) >> place & 1)

    def __len__(self) -> int:
        return self._count

    def among(self, made: int, since: int = 0) -> Iterator[int]:
        """The numbers from `since` to below `made` that have not left."""
        for page in range(since // PAGE, -(-made // PAGE)):
            first, bits = page * PAGE, self._pages.get(page, 0)
            if not bits:
                yield from range(max(first, since), min(first + PAGE, made))
            elif bits != _FULL:
                numbers = range(max(0, since - first), min(PAGE, made - first))
                yield from (first + i for i in numbers if not bits >> i & 1)

    def row(self, proc: int) -> tuple[str, bytes]:
        """The row to be saved when this one has left: the end of its name, and what is in it."""
        return self._row(proc // PAGE)

    def rows_of(self, jobs: Iterable[JobId]) -> Iterator[tuple[str, bytes]]:
        """The rows to be saved when these have left."""
        return map(self._row, sorted({job.proc // PAGE for job in jobs}))

    def _row(self, page: int) -> tuple[str, bytes]:
        self.rows.add(name := f".{page}")
        return name, self._pages[page].to_bytes(_BYTES, "little").rstrip(b"\0")

    def read(self, name: str, row: bytes) -> None:
        """Take over what was saved. A row without a number is of a release that had one row of all bits."""
        self.rows.add(name)
        first = int(name.removeprefix(".") or 0)
        for i, start in enumerate(range(0, len(row), _BYTES)):
            self._merge(first + i, int.from_bytes(row[start : start + _BYTES], "little"))
