"""
The record of the files of an attempt as a worker can have told it: what is recorded has to fold in all later releases.
"""

import math
from typing import Final

from kettle_wire.moved_files import (
    AUTHORIZATION,
    CONTACT,
    LONGEST,
    MOST_FILES,
    MOST_TRIES,
    PARAMETER,
    RESOLUTION,
    SENT,
    SPECIFICATION,
    TRANSFER,
    FailedTry,
    FileRecord,
    MovedFiles,
    SourceTotal,
)

_LARGEST: Final = 1 << 62
_SOURCES: Final = ("origin", "cache", "machine")
_ERRORS: Final = (PARAMETER, RESOLUTION, CONTACT, AUTHORIZATION, SPECIFICATION, TRANSFER)
_VERDICTS: Final = ("same", "different")
_WORD: Final = 20


def sane_files(moved: MovedFiles | None) -> MovedFiles | None:
    """Bounded, with the words that there are, and numbers that are some; None: there is nothing."""
    if moved is None:
        return None
    totals = {name: moved.totals[name] for name in (*_SOURCES, SENT) if name in moved.totals}
    return MovedFiles(
        files=[_file(each) for each in moved.files[:MOST_FILES]],
        totals={
            name: SourceTotal(
                files=_whole(each.files),
                bytes=_whole(each.bytes),
                hits=_whole(each.hits),
                seconds=_number(each.seconds),
            )
            for name, each in totals.items()
        },
        failed=_whole(moved.failed),
    )


def _file(file: FileRecord) -> FileRecord:
    return FileRecord(
        url=_text(file.url),
        upload=file.upload,
        source=_one_of(_SOURCES, file.source),
        server=_text(file.server),
        hit=file.hit,
        bytes=_whole(file.bytes),
        seconds=_number(file.seconds),
        tries=[
            FailedTry(
                server=_text(each.server),
                source=_one_of(_SOURCES, each.source),
                error=_one_of(_ERRORS, each.error),
                why=_text(each.why),
            )
            for each in file.tries[-MOST_TRIES:]
        ],
        checksum=_text(file.checksum)[:_WORD],
        verdict=_one_of(_VERDICTS, file.verdict),
        error=_one_of(_ERRORS, file.error),
    )


def _text(text: str) -> str:
    """As a database can store it."""
    return text[:LONGEST].replace("\0", "\\0")


def _one_of(words: tuple[str, ...], word: str) -> str:
    return word if word in words else ""


def _number(value: float) -> float:
    return value if math.isfinite(value) and 0 <= value < _LARGEST else 0.0


def _whole(value: int) -> int:
    return value if 0 <= value < _LARGEST else 0
