"""Where the files of a job came from and went, as its record tells: sentences for people."""

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Final

import msgspec

from kettle.terminal.quantities import counted, size
from kettle_wire.events import Event, JobCompleted, JobVacated
from kettle_wire.moved_files import SENT, FileRecord, MovedFiles, SourceTotal

_PLACES: Final = {
    "origin": "from where their URLs say",
    "cache": "from the site's cache",
    "machine": "from the machine's own cache",
    SENT: "to where their URLs say",
}
_FEW: Final = 3


class AttemptFiles(msgspec.Struct, frozen=True, kw_only=True):
    """The files that one attempt moved by URL."""

    attempt: int
    """Counts the runs of the job from 1."""
    moved: MovedFiles


def files_of(events: Iterable[Event]) -> list[AttemptFiles]:
    """What is recorded of a job's attempts; those that moved nothing by URL are not among them."""
    return [
        AttemptFiles(attempt=event.attempt, moved=event.usage.moved)
        for event in events
        if isinstance(event, JobCompleted | JobVacated) and event.usage.moved is not None
    ]


def sentences(moved: MovedFiles) -> Iterator[str]:
    """How much came from where, which cache was passed by and why, and what was not moved."""
    parts = [_total(name, total) for name, total in moved.totals.items()]
    if parts:
        yield f"Its files by URL: {'; '.join(parts)}."
    yield from _passed_by(moved.files)
    failed = [each for each in moved.files if each.error]
    for file in failed[:_FEW]:
        yield _failed(file)
    if moved.failed > len(failed[:_FEW]):
        yield f"{counted(moved.failed - len(failed[:_FEW]), 'more file')} could not be moved."


def _total(name: str, total: SourceTotal) -> str:
    had = f", {total.hits} of them were there already" if name == "cache" and total.hits else ""
    return f"{counted(total.files, 'file')} ({size(total.bytes / 1024)}) {_PLACES.get(name, name)}{had}"


def _passed_by(files: Iterable[FileRecord]) -> Iterator[str]:
    """Caches that did not serve what the origin then did."""
    found: Counter[tuple[str, str]] = Counter()
    amounts: Counter[tuple[str, str]] = Counter()
    for file in files:
        for tried in {(each.server, each.why) for each in file.tries if each.source == "cache"}:
            if file.source == "origin":
                found[tried] += 1
                amounts[tried] += file.bytes
    for (server, why), count in found.items():
        yield (
            f"The cache at {server} did not serve {counted(count, 'file')}, which came from the origin "
            f"({size(amounts[server, why] / 1024)}): {why}."
        )


def _failed(file: FileRecord) -> str:
    way = "sent to" if file.upload else "fetched from"
    if not file.tries:
        return f"A file was not {way} {file.url} ({file.error})."
    last = file.tries[-1]
    tries = counted(len(file.tries), "try", "tries")
    at = f" at {last.server}" if last.server else ""
    return f"A file was not {way} {file.url} ({last.error or file.error}; {tries}, the last one{at}): {last.why}."
