"""The lines of what people write."""

from pathlib import Path

import pytest

from kettle.jobs.lines import joined, lines_of
from kettle.jobs.quoting import split_v1, split_v2
from kettle.submit import parse
from kettle.transforms import parser as transforms


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        ("", []),
        ("a", ["a"]),
        ("a\r\nb\n\n", ["a", "b", ""]),
        ("a\x0bb\x0cc\rd\x1ce\x85f\u2028g", ["a\x0bb\x0cc\rd\x1ce\x85f\u2028g"]),
    ],
)
def test_a_line_ends_at_a_line_feed(text: str, lines: list[str]) -> None:
    """And nowhere else."""
    assert lines == lines_of(text)


@pytest.mark.parametrize(
    ("lines", "said"),
    [
        (["a \\", "b"], "a b"),
        (["a \\", "# b \\", " c"], "a c"),
        (["a \\", "# b"], "a"),
        (["a \\"], "a"),
        (["a \\", "\\", "b"], "a b"),
    ],
)
def test_what_is_commented_out_says_nothing(lines: list[str], said: str) -> None:
    """Also within a value that goes on over several lines."""
    following = iter(lines[1:])
    assert said == joined(lines[0], lambda: next(following, None))


def test_all_readers_go_by_that(tmp_path: Path) -> None:
    """Descriptions and transforms."""
    text = "executable = /bin/echo\narguments = 5 \\\n#  6 \\\n  7\u20288\nqueue\n"
    description = parse(text, source="x.sub", cwd=tmp_path, environ={})
    assert "5 7\u20288" == description.queues[0].assignments["arguments"].text
    transform = transforms.parse('SET Foo "a\u2028b" \\\n # no \\\n\n', source="x")
    assert ['"a\u2028b"'] == [statement.text for statement in transform.statements]


def test_blanks_of_other_kinds_are_no_blanks() -> None:
    """A name may have one of them, as HTCondor has it."""
    assert ["a\u00a0b", "c"] == split_v1("a\u00a0b \tc") == split_v2("a\u00a0b \tc")
