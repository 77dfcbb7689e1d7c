"""The reference of the tables is what their definitions say."""

import re
from pathlib import Path

import pytest

from kettle.projections import PROJECTIONS

PAGE = Path(__file__).parents[3] / "docs/reference/projections.md"
_TABLE = re.compile(r"^CREATE TABLE (\w+) \(\n(.*?)^\)", re.MULTILINE | re.DOTALL)
_COLUMN = re.compile(r"^    (\w+)\s+(double precision|\w+)", re.MULTILINE)


def defined(name: str) -> dict[str, list[tuple[str, str]]]:
    """Columns and their types, by table."""
    text = (PROJECTIONS[name]().directory / "schema.sql").read_text()
    return {
        table: [(c, kind) for c, kind in _COLUMN.findall(body) if c != "PRIMARY"]
        for table, body in _TABLE.findall(text)
    }


def documented(table: str) -> list[tuple[str, str]]:
    """The rows of the table's section."""
    section = PAGE.read_text().partition(f"### `{table}`\n")[2].partition("\n##")[0]
    return re.findall(r"^\| `(\w+)` \| ([\w ]+) \| .+ \|$", section, re.MULTILINE)


@pytest.mark.parametrize("name", PROJECTIONS)
def test_every_table_and_column_is_documented(name: str) -> None:
    """In the order of the definition, with its type."""
    tables = defined(name)
    assert tables, "no table was found"
    for table, columns in tables.items():
        assert columns == documented(f"{name}.{table}"), table


@pytest.mark.parametrize("name", PROJECTIONS)
def test_rows_follow_from_the_log_alone(name: str) -> None:
    """No clock, no serial, no chance in a definition or a statement; every table is kept by shard."""
    directory = PROJECTIONS[name]().directory
    for file in ("schema.sql", "queries.sql"):
        text = re.sub(r"--.*", "", (directory / file).read_text()).lower()
        assert not re.search(r"now\(\)|current_|serial|identity|random|clock_|nextval|uuid", text), file
    assert all(("shard", "text") == columns[0] for columns in defined(name).values())
