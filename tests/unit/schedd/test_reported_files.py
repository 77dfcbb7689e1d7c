"""The record of an attempt's files as a worker may have told it."""

import math

from kettle_services.schedd.commands.reported_files import sane_files
from kettle_wire.moved_files import (
    LONGEST,
    MOST_FILES,
    MOST_TRIES,
    FailedTry,
    FileRecord,
    MovedFiles,
    SourceTotal,
    summed,
)


def test_what_is_recorded_is_bounded_and_has_known_words() -> None:
    """Whatever a worker says: numbers that are none, words of its own, texts without end, NULs."""
    wild = FileRecord(
        url="x" * 10_000,
        source="elsewhere",
        server="a\0b",
        bytes=-1,
        seconds=math.nan,
        tries=[FailedTry(error="Sabotage", why="y" * 10_000)] * 100,
        checksum="z" * 100,
        verdict="maybe",
        error="Contact",
    )
    totals = {"cache": SourceTotal(files=1 << 80, bytes=5, seconds=math.inf), "other": SourceTotal(files=1)}
    found = sane_files(MovedFiles(files=[wild] * 1000, totals=totals, failed=-3))

    assert found is not None
    assert (MOST_FILES, MOST_TRIES) == (len(found.files), len(found.files[0].tries))
    file = found.files[0]
    assert (LONGEST, "", "a\\0b", 0, 0.0) == (
        len(file.url),
        file.source,
        file.server,
        file.bytes,
        file.seconds,
    )
    assert ("", LONGEST, 20, "", "Contact") == (
        file.tries[0].error, len(file.tries[0].why), len(file.checksum), file.verdict, file.error,
    )  # fmt: skip
    assert ({"cache": SourceTotal(bytes=5)}, 0) == (found.totals, found.failed)


def test_an_attempt_without_urls_has_no_record() -> None:
    """Not even an empty one."""
    assert sane_files(None) is None


def test_what_has_something_to_tell_is_kept_of_many_files() -> None:
    """The sums are of all of them."""
    plain = FileRecord(url="https://h/a", source="origin", bytes=2, seconds=1.0)
    hit = FileRecord(url="https://h/b", source="cache", hit=True, bytes=3)
    odd = FileRecord(url="https://h/c", error="Contact", tries=[FailedTry(why="away")])
    sent = FileRecord(url="https://h/d", upload=True, source="origin", bytes=7)
    record = summed([*[plain] * MOST_FILES, hit, sent, odd])

    assert (odd, MOST_FILES, 1) == (record.files[0], len(record.files), record.failed)
    assert {
        "origin": SourceTotal(files=MOST_FILES, bytes=2 * MOST_FILES, seconds=float(MOST_FILES)),
        "cache": SourceTotal(files=1, bytes=3, hits=1),
        "sent": SourceTotal(files=1, bytes=7),
    } == record.totals


def test_the_record_grows_by_what_was_moved_later() -> None:
    """Of transfers one after the other it is what it would be of all their files at once."""
    plain = FileRecord(url="https://h/a", source="origin", bytes=2, seconds=1.0)
    odd = FileRecord(url="https://h/c", error="Contact", tries=[FailedTry(why="away")])
    sent = FileRecord(url="https://h/d", upload=True, source="origin", bytes=7)
    first, second, third = [plain] * MOST_FILES + [odd], [sent, odd], [sent, plain]

    assert summed([*first, *second, *third]) == summed(third, summed(second, summed(first)))
