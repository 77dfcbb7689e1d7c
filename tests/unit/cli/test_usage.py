"""What `kettle usage` makes of an answer."""

import csv
import importlib
import io
import time
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kettle_services.cli.commands import usage
from kettle_services.cli.errors import CommandError
from kettle_services.cli.output import exports
from kettle_services.cli.output.screen import Screen
from kettle_services.cli.reports import usage as ledger
from kettle_services.cli.reports.periods import midnight, slices
from kettle_services.cli.reports.usage import UsedResources
from kettle_wire.commands.accounting import UsageRow

PARQUET: Any = importlib.import_module("pyarrow.parquet")
BERLIN = ZoneInfo("Europe/Berlin")
HOUR = 3_600_000_000


@pytest.fixture
def berlin(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("TZ", "Europe/Berlin")
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


def at(*parts: int) -> int:
    return round(datetime(*parts, tzinfo=BERLIN).timestamp() * 1e6)  # type: ignore[arg-type,misc]  # year, month, ...


@pytest.mark.usefixtures("berlin")
def test_days_are_those_of_local_time() -> None:
    """
    The clock was put back on 2026-10-25: that day has 25 hours. The first and the last day are as far as they are asked for.
    """
    found = slices(at(2026, 10, 24, 12), at(2026, 10, 26, 6), "day")
    assert ["2026-10-24", "2026-10-25", "2026-10-26"] == found.names
    assert [12, 25, 6] == [(b - a) // HOUR for a, b in zip(found.cuts, found.cuts[1:], strict=False)]
    assert at(2026, 10, 26) == midnight(datetime(2026, 10, 25, 23, tzinfo=BERLIN), 1)


@pytest.mark.usefixtures("berlin")
def test_months() -> None:
    """From the middle of a month over the end of a year."""
    found = slices(at(2026, 11, 15), at(2027, 2, 1), "month")
    assert ["2026-11", "2026-12", "2027-01"] == found.names
    assert [at(2026, 12, 1), at(2027, 1, 1), at(2027, 2, 1)] == found.cuts[1:]


LEDGER = ledger.ledger(
    ["owner", "day"],
    slices(0, 48 * HOUR),
    [
        UsageRow(
            key=["ada", "d1"],
            jobs=1,
            attempts=2,
            wall=HOUR,
            slot_time=2 * HOUR,
            good=HOUR,
            lost=HOUR,
            cpu=HOUR,
        ),
        UsageRow(key=["", "d2"], jobs=1, attempts=1, wall=HOUR, slot_time=HOUR, good=HOUR, uncharged=HOUR),
    ],
)


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_a_table_has_totals_and_a_terminal_bars(monkeypatch: pytest.MonkeyPatch) -> None:
    """
    2 core hours of which 1 was worked: 50 %; the longest bar is that of the largest row; off a terminal there is none.
    """
    out = io.StringIO()
    usage.show(LEDGER, Screen(out=out, err=io.StringIO()))
    lines = [line.split() for line in out.getvalue().splitlines()]
    assert [
        ["OWNER", "DAY", "JOBS", "ATTEMPTS", "WALL", "CORE", "CPU", "EFF", "GOOD", "LOST", "UNCHARGED"],
        ["ada", "d1", "1", "2", "1.00", "2.00", "1.00", "50%", "1.00", "1.00", "0.00"],
        ["-", "d2", "1", "1", "1.00", "1.00", "0.00", "0%", "1.00", "0.00", "1.00"],
        ["total", "2", "3", "2.00", "3.00", "1.00", "33%", "2.00", "1.00", "1.00"],
    ] == lines
    monkeypatch.setenv("COLUMNS", "200")
    terminal = Terminal()
    usage.show(LEDGER, Screen(out=terminal, err=io.StringIO(), environ={"NO_COLOR": "1"}))
    assert [0, 20, 10, 0] == [line.count("█") for line in terminal.getvalue().splitlines()]


NAME = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=8)
AMOUNT = st.integers(0, 10**15)


@st.composite
def used(draw: st.DrawFn) -> UsedResources:
    found = UsedResources(names=[draw(NAME), draw(NAME)])
    for name in ("jobs", "attempts", "wall", "slot_time", "good", "lost", "cpu", "uncharged"):
        setattr(found, name, draw(AMOUNT))
    return found


@given(st.lists(used(), max_size=5))
def test_exports_read_back_as_the_same_numbers(rows: list[UsedResources]) -> None:
    """Whatever the names are, to the microsecond."""
    by = ["owner", "project"]
    kinds = ledger.columns(by)
    wanted = [row.exported(by) for row in rows]
    table = PARQUET.read_table(io.BytesIO(exports.as_parquet(kinds, wanted)))
    assert wanted == table.to_pylist()
    text = exports.as_csv(kinds, wanted).decode()
    read = list(csv.DictReader(io.StringIO(text, newline="")))
    assert wanted == [{name: kinds[name](value) for name, value in row.items()} for row in read]
    assert [row.wall for row in rows] == [round(float(row["wall_seconds"]) * 1e6) for row in wanted]


def test_a_file_is_written_whole_or_not(tmp_path: Path) -> None:
    """What was there is replaced at once; a place that is none is told."""
    file = tmp_path / "usage.csv"
    for data in (b"old", b"new"):
        exports.write(file, data)
        assert data == file.read_bytes()
    assert [file] == list(tmp_path.iterdir())
    with pytest.raises(CommandError, match=r"cannot write .*No such file"):
        exports.write(tmp_path / "none" / "usage.csv", b"")
