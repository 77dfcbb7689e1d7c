"""What is written into a description, and what the jobs get of it: the same."""

import tempfile
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from kettle.jobs.quoting import split_v2
from kettle.submit import Site, Submission, expand, parse

SITE = Site(arch="X86_64", opsys="LINUX", file_system_domain="here", check_files=False)
PLAIN = st.characters(exclude_categories=["Cs", "Cc", "Zs", "Zl", "Zp"], exclude_characters="$#)\\")
WORD = st.text(PLAIN, min_size=1, max_size=8)
LINES = st.lists(WORD, min_size=1, max_size=4).map(" ".join)
"""What stands on a line, as it stands there: one blank between words."""


def submission(text: str, cwd: Path = Path("/tmp")) -> Submission:
    return expand(parse(text, source="job.sub", cwd=cwd, environ={}), SITE)


@given(LINES)
def test_a_shell_gets_its_line(line: str) -> None:
    """As one word, with whatever quotes are in it."""
    raw = submission(f"shell = {line}\nqueue\n").ad["Arguments"]
    assert ["-c", line] == split_v2(str(raw))


@given(st.lists(LINES, min_size=1, max_size=6), st.integers(min_value=1, max_value=3))
def test_each_item_is_a_job(items: list[str], count: int) -> None:
    """
    From lines in the description, from a file and from what a program prints: the same, and each so often.
    """
    text = "executable = /bin/x\nbatch_name = [$(x)]\nqueue"
    with tempfile.TemporaryDirectory() as place:
        (Path(place) / "items").write_text("\n".join(items) + "\n")
        within = submission(f"{text} {count} x from (\n" + "\n".join(items) + "\n)\n", Path(place))
        beside = submission(f"{text} {count} x from items\n", Path(place))
        printed = submission(f"{text} {count} x from /bin/cat items |\n", Path(place))
    assert within == beside == printed
    assert [f"[{item}]" for item in items for _ in range(count)] == [
        within.job(proc)["JobBatchName"] for proc in range(within.count)
    ]


@given(st.lists(st.tuples(st.sampled_from("abc"), LINES), max_size=5), st.integers(min_value=0, max_value=5))
def test_it_makes_no_difference_where_lines_stand(lines: list[tuple[str, str]], at: int) -> None:
    """What is included is as if it stood in the place of the statement."""
    written = [f"{name} = {value}" for name, value in lines]
    tail = "executable = /bin/x\nbatch_name = [$(a:-)|$(b:-)|$(c:-)]\nqueue\n"
    whole = "".join(f"{line}\n" for line in written) + tail
    with tempfile.TemporaryDirectory() as place:
        (Path(place) / "inner.sub").write_text("".join(f"{line}\n" for line in written[at:]))
        parts = "".join(f"{line}\n" for line in written[:at]) + "include : inner.sub\n" + tail
        assert submission(whole, Path(place)) == submission(parts, Path(place))
