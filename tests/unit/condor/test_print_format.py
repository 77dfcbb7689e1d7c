"""What print format files say, and the tables that come of it."""

from pathlib import Path

import pytest

from kettle_services.condor.errors import ToolError
from kettle_services.condor.printing.print_format import print_format_of, read_print_format
from kettle_services.condor.printing.print_functions import FUNCTIONS, function_named
from kettle_services.condor.printing.print_table import PrintTable
from kettle_services.condor.printing.values import AdRow
from kettle_wire.ads.types import Ad, Expr

JOBS: list[Ad] = [
    {
        "ClusterId": 12,
        "ProcId": 3,
        "Owner": "ada",
        "JobStatus": 2,
        "JobPrio": 0,
        "MemoryUsage": Expr("Kib / 1024"),
        "Kib": 2048,
    },
    {"ClusterId": 7, "ProcId": 0, "Owner": "grace-of-the-navy", "JobStatus": 5, "JobPrio": -5},
    {"ClusterId": 100, "ProcId": 10, "JobStatus": 1},
]


def table(text: str, ads: list[Ad] | None = None) -> list[str]:
    printed = PrintTable(print_format_of(text))
    return list(printed.lines(printed.ordered(JOBS if ads is None else ads)))


def test_the_table_of_the_manual() -> None:
    """Widths, titles, functions and fillers, as HTCondor's manual has them for condor_q -nobatch."""
    lines = table("""
        # the queue
        SELECT
           ClusterId     AS "    ID"  NOSUFFIX WIDTH AUTO
           ProcId        AS " "       NOPREFIX          PRINTF ".%-3d"
           Owner         AS "OWNER"         WIDTH -14   PRINTAS OWNER
           JobStatus     AS ST                          PRINTAS JOB_STATUS
           JobPrio       AS PRI       OR _
           MemoryUsage   AS SIZE            WIDTH 6     PRINTAS MEMORY_USAGE OR ??
        SUMMARY STANDARD
        """)
    assert [
        "    ID     OWNER          ST PRI SIZE  \n",
        "12    .3   ada            R  0      2.0\n",
        "7     .0   grace-of-the-navy H  -5  [????]\n",
        "100   .10                 I  _   [????]\n",
    ] == lines


def test_ads_are_sorted() -> None:
    """By several keys, each up or down; what has no value comes last, and texts are compared without case."""
    ads: list[Ad] = [{"A": "b", "N": 1}, {"A": "B", "N": 2}, {"A": "a", "N": 3}, {"N": 4}]
    assert ["3\n", "2\n", "1\n", "4\n"] == table("SELECT NOHEADER\nN\nGROUP BY\n A\n N DESCENDING\n", ads)
    assert ["8  \n", "6  \n"] == table("SELECT BARE\nN*2\nWHERE N > 2\nGROUP BY N DECENDING", ads[2:])


def test_records_and_labels() -> None:
    text = "SELECT LABEL SEPARATOR ': ' FIELDPREFIX '' FIELDSUFFIX '\\n' RECORDSUFFIX '\\n--\\n'\nOwner AS Who\nJobPrio\n"
    assert ["Who: ada\nJobPrio: 0\n--\n"] == table(text, JOBS[:1])


def test_columns_are_cut_and_aligned() -> None:
    ads: list[Ad] = [{"S": "abcdefgh", "F": 2.5}, {"S": "x", "F": 100}]
    frame = "SELECT NOHEADER FIELDPREFIX '' FIELDSUFFIX '|' RECORDSUFFIX '|\\n'\n"
    columns = "S WIDTH -4 TRUNCATE\nF PRINTF %6.2f\nS AS longer RIGHT\n"
    assert ["abcd|  2.50|abcdefgh|\n", "x   |100.00|       x|\n"] == table(frame + columns, ads)


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("", "is empty: a print format begins with SELECT"),
        ("\n\nOwner\n", r"format, line 3: a print format begins with SELECT, not with 'Owner'"),
        ("SELECT HEADLESS\n", "line 1: SELECT knows no 'HEADLESS'"),
        ("SELECT NOHEAD\n", "SELECT knows no 'NOHEAD'; do you mean NOHEADER?"),
        ("SELECT\nOwner WIDTH wide\n", "line 2: WIDTH takes AUTO or a number, not 'wide'"),
        ("SELECT\nOwner OR X\n", "line 2: OR takes one of"),
        ("SELECT\nOwner AS\n", "line 2: nothing stands behind AS"),
        ("SELECT\nOwner AS O PRINTSA OWNER\n", "'PRINTSA' is not a keyword; do you mean PRINTAS?"),
        ("SELECT\n1 +\n", r"line 2: '1 \+' is neither an attribute nor an expression"),
        ("SELECT\nOwner\nWHERE (\n", r"WHERE: '\(' is neither"),
        (
            "SELECT\nOwner\nSUMMARY ALL\n",
            "line 3: SUMMARY takes STANDARD or NONE, or columns on the lines below it, not 'ALL'",
        ),
        (
            "SELECT\nOwner\nSUMMARY NONE\nJobs\n",
            "line 4: columns stand behind SUMMARY without STANDARD or NONE",
        ),
        ("SELECT\nQDate PRINTAS QDAT\n", "PRINTAS knows no function 'QDAT'; do you mean QDATE?"),
    ],
)
def test_what_is_no_print_format_is_refused(text: str, sentence: str) -> None:
    with pytest.raises(ToolError, match=sentence):
        PrintTable(print_format_of(text))


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(ToolError, match=r"Can't open print-format file: .*none\.cpf: No such file"):
        read_print_format(str(tmp_path / "none.cpf"))


@pytest.mark.parametrize(
    ("function", "attribute", "ad", "expected"),
    [
        ("ACTIVITY_CODE", "Activity", {"State": "Claimed", "Activity": "Idle"}, "Ci"),
        ("ACTIVITY_TIME", "T", {"T": 100, "LastHeardFrom": 3761}, "0+01:01:01"),
        ("BATCH_NAME", "Cmd", {"JobBatchName": "night"}, "night"),
        ("CONDOR_VERSION", "V", {"V": "$CondorVersion: 25.0.1 2026-01-01 BuildID: Kettle $"}, "25.0.1"),
        ("GRID_RESOURCE", "G", {"G": "condor ce.example https://ce.example:9619"}, "condor->https://ce.example:9619 ce.example"),
        ("JOB_DESCRIPTION", "Cmd", {"Cmd": "/bin/sleep", "Args": "5"}, "sleep 5"),
        ("JOB_ID", "ClusterId", {"ClusterId": 1, "ProcId": 2}, "1.2"),
        ("JOB_STATUS", "S", {"S": 2, "TransferringOutput": True}, " >"),
        ("JOB_UNIVERSE", "U", {"U": 5}, "Vanilla"),
        ("MEMBER_COUNT", "L", {"L": Expr('{"a", "b"}')}, "2"),
        ("PLATFORM", "OpSys", {"OpSys": "LINUX", "OpSysAndVer": "Debian12", "Arch": "X86_64"}, "x64/Debian12"),
        ("READABLE_KB", "K", {"K": 2048}, "2.0 MB"),
        ("READABLE_MB", "M", {"M": 512}, "512.0 MB"),
        ("READABLE_BYTES", "B", {"B": 10}, "10.0 B "),
        ("STRINGS_FROM_LIST", "L", {"L": Expr('{"b", "a"}')}, "b, a"),
        ("UNIQUE", "L", {"L": "b, a, b"}, "a, b"),
        ("TIME", "T", {"T": 90061}, "1+01:01:01"),
        ("QDATE", "Q", {"Q": "never"}, None),
    ],
)  # fmt: skip
def test_functions_write_for_people(function: str, attribute: str, ad: Ad, expected: str | None) -> None:
    row = AdRow(ad)
    assert expected == function_named(function).write(row.value(attribute), row)


def test_every_function_bears_an_ad_without_values() -> None:
    """It has nothing to say then, or says what it can."""
    row = AdRow({})
    for name, function in FUNCTIONS.items():
        assert isinstance(function.write(None, row), str | None), name
