"""The files of a piece give back what went into them, or say that they do not."""

import datetime as dt
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kettle.archive import ArchiveError, DamagedArchiveError
from kettle.archive.parquet import GROUP, EventsWriter, RowsHash, arrow, read_events, read_stream
from kettle.storage.archived_pieces import EventRow

AT = dt.datetime(2025, 11, 21, 10, 0, 0, 123457, tzinfo=dt.UTC)


def row(position: int, *, frame: int = 1, stream: str = "job/1.0", data: bytes = b"") -> EventRow:
    return (frame, position, 1, position, AT, stream, "job.removed/1", data, b"")


def write(directory: Path, *groups: list[EventRow]) -> tuple[Path, Path]:
    events, streams = directory / "events.parquet", directory / "streams.parquet"
    with events.open("wb") as file, streams.open("wb") as index:
        with EventsWriter("s", file) as writer:
            for group in groups:
                writer.add(group)
        writer.write_streams(index)
    return events, streams


TEXT = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=8)
TIMES = st.integers(0, 1 << 52).map(lambda us: AT + dt.timedelta(microseconds=us))


@given(
    st.lists(
        st.tuples(
            TIMES,
            TEXT,
            TEXT,
            st.binary(max_size=40),
            st.binary(max_size=8),
        ),
        min_size=1,
        max_size=12,
    )
)
def test_rows_come_back_as_they_were(
    tmp_path_factory: pytest.TempPathFactory, values: list[tuple[dt.datetime, str, str, bytes, bytes]]
) -> None:
    """Whatever text, bytes and times they have; the hash over them is that of the rows that were written."""
    rows: list[EventRow] = [(n // 3, n, 7, n, *value) for n, value in enumerate(values, 1)]
    events, streams = write(tmp_path_factory.mktemp("rows"), rows[:5], *([rows[5:]] if rows[5:] else []))
    read = [one for group in read_events(events) for one in group]
    assert rows == read
    written, again = RowsHash(), RowsHash()
    written.add(rows)
    again.add(read)
    assert (written.hex(), len(rows)) == (again.hex(), again.rows)
    for name in {one[5] for one in rows}:
        assert [one for one in rows if one[5] == name] == read_stream(events, streams, name)


def test_rows_between_two_places_are_read(tmp_path: Path) -> None:
    """Groups are left out by their statistics, and never a row too many or too few."""
    rows = [row(at, frame=(at + 2) // 3) for at in range(1, 61)]
    events, _ = write(tmp_path, *(rows[start : start + 7] for start in range(0, 60, 7)))
    for after in [(0, 0), (2, 1 << 62), (2, 5), (20, 1 << 62), (20, 60), (7, 21), (7, 20)]:
        for until in (0, 1, 6, 7, 20, 99):
            expected = [one for one in rows if (one[0], one[1]) > after and one[0] <= until]
            assert expected == [
                one for group in read_events(events, after=after, until=until) for one in group
            ]


def test_a_stream_is_found_in_the_groups_that_have_it(tmp_path: Path) -> None:
    """Also if its events lie far apart, and no other rows come with them."""
    rows = [row(at, frame=at, stream=f"job/{at % 5_000}.0") for at in range(1, 2 * GROUP + 100)]
    events, streams = write(tmp_path, rows[:GROUP], rows[GROUP : 2 * GROUP], rows[2 * GROUP :])
    assert [one for one in rows if one[5] == "job/77.0"] == read_stream(events, streams, "job/77.0")
    assert [] == read_stream(events, streams, "job/77")


def test_a_page_that_rots_after_the_file_was_hashed_is_noticed(tmp_path: Path) -> None:
    """Pages carry checksums of their own."""
    rows = [row(at, frame=at, data=b"%d" % (at * 7919 % 1009)) for at in range(1, 1000)]
    events, _ = write(tmp_path, rows)
    assert [rows] == list(read_events(events))
    column = arrow("pyarrow.parquet").ParquetFile(events).metadata.row_group(0).column(8)
    data = bytearray(events.read_bytes())
    data[column.data_page_offset + column.total_compressed_size // 2] ^= 1
    events.write_bytes(data)
    with pytest.raises(DamagedArchiveError, match=str(events)):
        list(read_events(events))


def test_without_pyarrow_the_extra_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Reading and writing say what to install."""
    arrow.cache_clear()
    with monkeypatch.context() as patch:
        for module in ("pyarrow", "pyarrow.parquet"):
            patch.setitem(sys.modules, module, None)
        with pytest.raises(ArchiveError, match=r"install kettle\[archive\]"):
            list(read_events(tmp_path / "events.parquet"))
        with pytest.raises(ArchiveError, match=r"install kettle\[archive\]"):
            write(tmp_path, [row(1)])
    arrow.cache_clear()
