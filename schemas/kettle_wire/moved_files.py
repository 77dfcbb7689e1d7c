"""
What is recorded of the files that an attempt moved by URL: where each came from, what was tried, and what was checked.

Of an attempt with very many files the totals are complete, and the list is not.
"""

from typing import Final, Literal

import msgspec

MOST_FILES: Final = 50
"""Files of one attempt in its record; those that failed, or came from elsewhere than meant, go before the others."""
MOST_TRIES: Final = 4
"""Tries of one file in its record: the last ones."""
SENT: Final = "sent"
"""Instead of a source, what was sent."""
LONGEST: Final = 300
"""Characters of a URL or a reason."""

Source = Literal["origin", "cache", "machine", ""]
"""The server that the URL names, a cache of the site, or the machine's own cache; empty: nothing was moved."""
ErrorType = Literal["Parameter", "Resolution", "Contact", "Authorization", "Specification", "Transfer", ""]
"""
HTCondor's words for why a transfer failed: it makes no sense, a name has no address, no connection, no right, there is no such file,
or it broke on its way.
"""
PARAMETER: Final = "Parameter"
RESOLUTION: Final = "Resolution"
CONTACT: Final = "Contact"
AUTHORIZATION: Final = "Authorization"
SPECIFICATION: Final = "Specification"
TRANSFER: Final = "Transfer"
Verdict = Literal["same", "different", ""]
"""Of a comparison; empty: there was nothing to compare with."""


class FailedTry(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One try that moved nothing, or not all."""

    server: str = ""
    """Host and port."""
    source: str = ""
    """A `Source`."""
    error: str = ""
    """An `ErrorType`."""
    why: str = ""
    """For people, without secrets."""


class FileRecord(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One file that was moved by URL, or was not."""

    url: str
    """As the job names it, without secrets."""
    upload: bool = False
    source: str = ""
    """A `Source`."""
    server: str = ""
    """Host and port of who served it."""
    hit: bool | None = None
    """Whether a cache had it already; None: it is not known, or no cache was asked."""
    bytes: int = 0
    seconds: float = 0.0
    tries: list[FailedTry] = []
    """Those that failed, in order; the last ones."""
    checksum: str = ""
    """What was compared at the end: `adler32`, `sha256`, `size`."""
    verdict: str = ""
    """A `Verdict`."""
    error: str = ""
    """An `ErrorType`: why it was not moved in the end; empty: it was."""


class SourceTotal(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """All files of an attempt that one kind of source served."""

    files: int = 0
    bytes: int = 0
    hits: int = 0
    """Of these, files that a cache had already."""
    seconds: float = 0.0


class MovedFiles(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The files that one attempt moved by URL."""

    files: list[FileRecord] = []
    """Some of them, if there are more than `MOST_FILES`."""
    totals: dict[str, SourceTotal] = {}
    """By source; of what was sent: `SENT`."""
    failed: int = 0
    """Files that were not moved."""


def summed(records: list[FileRecord], before: MovedFiles | None = None) -> MovedFiles:
    """The record of an attempt that moved these, after what is in the record of `before`."""
    earlier = before or MovedFiles()
    totals = dict(earlier.totals)
    for each in records:
        if each.error or not each.source:
            continue
        name = SENT if each.upload else each.source
        total = totals.get(name, SourceTotal())
        totals[name] = SourceTotal(
            files=total.files + 1,
            bytes=total.bytes + each.bytes,
            hits=total.hits + (each.hit is True),
            seconds=total.seconds + each.seconds,
        )
    failed = earlier.failed + sum(bool(each.error) for each in records)
    listed = [*earlier.files, *records]
    odd = [each for each in listed if each.error or each.tries]
    plain = [each for each in listed if not (each.error or each.tries)]
    return MovedFiles(files=[*odd, *plain][:MOST_FILES], totals=totals, failed=failed)
