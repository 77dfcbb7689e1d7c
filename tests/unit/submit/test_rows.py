"""Queue statements: their variables as commands, tables, and lists as HTCondor reads them."""

from pathlib import Path

import pytest

from kettle.submit import NoJobError, Site, Submission, SubmitError, expand, parse

HEAD = "executable = /bin/true\n"
SITE = Site(arch="X86_64", opsys="LINUX", file_system_domain="example.org", check_files=False)


def submission(text: str, cwd: Path = Path("/")) -> Submission:
    read = parse(text, source="job.sub", cwd=cwd, environ={"PATH": "/bin:/usr/bin"}, tolerant=True)
    return expand(read, SITE)


def values(text: str, attribute: str, cwd: Path = Path("/")) -> list[object]:
    found = submission(text, cwd)
    ads = [{name.lower(): value for name, value in found.job(proc).items()} for proc in range(found.count)]
    return [ad.get(attribute.lower()) for ad in ads]


@pytest.mark.parametrize(
    ("text", "attribute", "expected"),
    [
        ("queue arguments in (10s, 20s)", "Args", ["10s", "20s"]),
        ("arguments = 1\nqueue args in (2 3)", "Args", ["1", "1"]),
        ("args = 1\nqueue arguments in (2 3)", "Args", ["2", "3"]),
        ("request_memory = 1\nqueue request_memory in (512, 1GB)", "RequestMemory", [512, 1024]),
        ("queue MY.Attr in (1 2)", "Attr", [1, 2]),
        ("MY.Attr = 7\nqueue my.attr in (1 2)", "Attr", [1, 2]),
        ("queue executable in (/bin/a /bin/b)", "Cmd", ["/bin/a", "/bin/b"]),
        ("queue 2 prio in (5 6)", "JobPrio", [5, 5, 6, 6]),
        ("queue request_gpus in (1 2)", "RequestGPUs", [1, 2]),
        ("n = 4\nqueue request_cpus in ($(n) 5)", "RequestCpus", [4, 5]),
    ],
)
def test_a_variable_may_be_a_command(text: str, attribute: str, expected: list[object]) -> None:
    """With the value of the row, in whichever spelling."""
    assert expected == values(f"{HEAD}{text}\n", attribute)


def test_a_senseless_value_is_refused_with_the_queue_statement() -> None:
    """Which is where it stands."""
    with pytest.raises(SubmitError, match=r"job\.sub, line 2: request_cpus must be a number"):
        submission(f"{HEAD}queue request_cpus in (1 true)\n")


@pytest.mark.parametrize(
    ("table", "lines", "expected"),
    [
        ("table", "x, y\n1, 2 3\n4,5\n", ["1|2 3", "4|5"]),
        ("TABLE(sep=;)", "x;y\n1,2;3\n", ["1,2|3"]),
        ("table(header=1,skip=1)", "a\nx,y\n0,0\n1,2\n", ["0|0", "1|2"]),
        ("table [1:]", "x,y\n1,2\n3,4\n", ["3|4"]),
    ],
)
def test_a_table_names_its_columns(table: str, lines: str, expected: list[str], tmp_path: Path) -> None:
    """In its first line, or another; commas, or something else, are between the values."""
    (tmp_path / "t.csv").write_text(lines)
    text = f"{HEAD}arguments = $(x)|$(y)\nqueue from {table} t.csv\n"
    assert expected == values(text, "Args", tmp_path)
    if "[" not in table:
        assert expected == values(text.replace("t.csv", f"(\n{lines})"), "Args")


@pytest.mark.parametrize(
    ("statement", "sentence"),
    [
        ("from table t.csv", "the column 'no name' of the table is no name of a variable"),
        ("from table(header=9) t.csv", "the table has no line 9"),
        ("from table(colour=blue) t.csv", "'colour=blue' is no option of a table"),
    ],
)
def test_a_table_that_makes_no_sense_is_refused(statement: str, sentence: str, tmp_path: Path) -> None:
    """With what would."""
    (tmp_path / "t.csv").write_text("x,no name\n1,2\n")
    with pytest.raises(SubmitError, match=r"job\.sub, line 2: ") as caught:
        submission(f"{HEAD}queue {statement}\n", tmp_path)
    assert sentence in str(caught.value)


@pytest.mark.parametrize(
    ("cut", "expected"), [("[1]", ["b", "c"]), ("[-1]", ["c"]), ("[:2]", ["a", "b"]), ("[::2]", ["a", "c"])]
)
def test_a_slice_with_one_number_begins_there(cut: str, expected: list[str]) -> None:
    """As HTCondor takes it."""
    assert expected == values(f"{HEAD}arguments = $(x)\nqueue x in {cut} (a b c)\n", "Args")


@pytest.mark.parametrize(
    ("statement", "sentence"),
    [
        ("queue 0", "the queue statement makes no job"),
        ("queue x in ()", "the list is empty"),
        ("queue x in [7:] (a)", "the slice leaves none of the list"),
        ("queue x matching no*thing", "nothing matches no*thing"),
    ],
)
def test_a_description_without_jobs_is_told_apart(statement: str, sentence: str, tmp_path: Path) -> None:
    """It is sound: condor_submit warns of it and is content."""
    with pytest.raises(NoJobError) as caught:
        submission(f"{HEAD}{statement}\n", tmp_path)
    assert sentence in str(caught.value)


def test_what_matches_twice_is_an_item_once(tmp_path: Path) -> None:
    """With a warning."""
    (tmp_path / "a.dat").touch()
    found = submission(f"{HEAD}queue x matching *.dat a.dat\n", tmp_path)
    assert 1 == found.count
    assert ("'a.dat' matching pattern 'a.dat' is a duplicate of item 0, skipping",) == found.warnings


def test_lines_that_mean_nothing_are_told() -> None:
    """Macros that nothing uses and misspelt commands; not those that DAGMan gives everybody."""
    text = "requst_cpus = 4\nword = x\nused = y\narguments = $(used)\nJOB = a\ntmp.x = 1\nqueue v in (a b)\n"
    found = submission(HEAD + text)
    assert ["requst_cpus = 4", "word = x", "v = "] == [f"{each.name} = {each.text}" for each in found.unused]
    assert [False, False, True] == [each.of_queue for each in found.unused]


def test_all_missing_files_are_named(tmp_path: Path) -> None:
    """Whichever command and job they belong to."""
    site = Site(arch="X86_64", opsys="LINUX", file_system_domain="example.org")
    text = f"{HEAD}transfer_input_files = $(x), both\ninput = in\nqueue x in (a b)\n"
    read = parse(text, source="job.sub", cwd=tmp_path, environ={})
    with pytest.raises(SubmitError) as caught:
        expand(read, site)
    for name in "a", "both", "in", "b":
        assert f"the input file {tmp_path / name} does not exist" in str(caught.value)
