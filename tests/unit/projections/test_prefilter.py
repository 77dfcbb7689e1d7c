"""What of a constraint becomes SQL. That it never excludes a match is held by the tests of the history."""

import pytest

from kettle.classad import Context, parse
from kettle.projections.jobs import prefilter
from kettle.projections.jobs.searchable_attributes import searchable
from kettle_wire.ads.types import Ad, Expr

NOW = Context(now=lambda: 1_000)


@pytest.mark.parametrize(
    ("constraint", "sql", "arguments"),
    [
        ("ClusterId == 12", "cluster BETWEEN $3::bigint AND $4::bigint", [12, 12]),
        ("(5 < JobStatus)", "status >= $3::bigint", [5]),
        ("CompletionDate > time() - 400", "(completed >= $3::bigint OR search @> $4::text::jsonb)", [600, '{"completiondate":null}']),
        ("ExitCode != 0", "(exit_code <> $3::bigint OR search @> $4::text::jsonb)", [0, '{"exitcode":null}']),
        ("RemoteWallClockTime <= 1.5", "(wall_time <= $3::double precision OR search @> $4::text::jsonb)", [1.5, '{"remotewallclocktime":null}']),
        ('Colour == "Red"', "(search @> $3::text::jsonb OR search @> $4::text::jsonb)", ['{"colour":"red"}', '{"colour":null}']),
        ("Colour == true", "(search @> $3::text::jsonb OR search @> $4::text::jsonb)", ['{"colour":1}', '{"colour":null}']),
        ("ProcId == 1 && Weight > 3", "proc BETWEEN $3::bigint AND $4::bigint", [1, 1]),
        ("ProcId == 1 || ProcId == 3", "(proc BETWEEN $3::bigint AND $4::bigint OR proc BETWEEN $5::bigint AND $6::bigint)", [1, 1, 3, 3]),
    ],
)  # fmt: skip
def test_what_the_tables_can_tell(constraint: str, sql: str, arguments: list[object]) -> None:
    """
    Comparisons of columns, equality of any attribute, joined by and & or; arguments count on from where they are told.
    """
    assert (sql, arguments) == prefilter(parse(constraint), NOW, first=3)


@pytest.mark.parametrize(
    "constraint",
    [
        "Weight > 3", "Colour =!= 5", "ExitCode =!= 0", '"red" =!= ExitCode', "Colour =?= undefined", "!(ProcId == 1)",
        "ProcId == 1 || Weight > 3", "ProcId", "true", "TARGET.ProcId == 1", ".ProcId == 1", "CurrentTime == 5",
        "ProcId == Weight", "ProcId + 1", "ProcId < 9007199254740993", "ProcId == random()", "ProcId == 1 ? true : false",
        "(" * 60 + "ProcId == 1" + ")" * 60,
    ],
)  # fmt: skip
def test_what_they_cannot_tell(constraint: str) -> None:
    """What may be true of any row excludes none."""
    assert ("true", []) == prefilter(parse(constraint), NOW)


def test_what_a_document_cannot_hold_is_unknown() -> None:
    """
    Expressions, long text, large integers and reals without an end are null; columns have numbers and nothing else.
    """
    ad: Ad = {
        "ClusterId": 1, "ProcId": 2, "JobStatus": 4, "Owner": "Älice", "ExitCode": True, "MemoryUsage": Expr("1 + 1"),
        "RemoteWallClockTime": 3, "QDate": 1.5, "Big": 2**53 + 1, "Long": "x" * 257, "Zero": "a\0", "Inf": float("inf"),
    }  # fmt: skip
    numbers, document = searchable(ad)
    assert [1, 3.0, None, None, None, None] == numbers
    assert (
        '{"owner":"Älice","memoryusage":null,"qdate":null,"big":null,"long":null,"zero":null,"inf":null}'
        == document
    )
