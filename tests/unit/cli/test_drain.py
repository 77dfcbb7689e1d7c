"""What `kettle drain` refuses before it asks anybody."""

import pytest

from kettle_services.cli.__main__ import main


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["node1", "--request-id", "r1"], "it goes with --cancel"),
        (["--cancel", "node1", "--reason", "smoke"], "--reason says how to drain"),
        (["--cancel", "node1", "--resume-on-completion"], "--resume-on-completion says how to drain"),
        (["node1", "--check", "Cpus >"], "the expression of --check cannot be read"),
        (["node1", "--start", "((true)"], "the expression of --start cannot be read"),
    ],
)
def test_what_makes_no_sense_is_refused(
    words: list[str], sentence: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Exit status 2 and one sentence."""
    assert main(["drain", *words]) == 2
    said = capsys.readouterr()
    assert (said.out, 1) == ("", len(said.err.splitlines()))
    assert sentence in said.err


def test_one_speed_at_a_time(capsys: pytest.CaptureFixture[str]) -> None:
    """And none with --cancel."""
    for words in (["--quick", "--fast"], ["--cancel", "--graceful"]):
        with pytest.raises(SystemExit) as exit_:
            main(["drain", *words, "node1"])
        assert 2 == exit_.value.code
        assert "not allowed with" in capsys.readouterr().err
