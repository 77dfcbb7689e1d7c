"""What is typed to the commands of iam is looked at before the pool is asked."""

import io
import json
import shlex
import sys
from pathlib import Path

import pytest

from kettle_services.cli.__main__ import main


@pytest.mark.parametrize(
    ("words", "says"),
    [
        ("worker token create --lifetime 31d", "at most 30d"),
        ("worker token create --lifetime 0s", "more than 0s"),
        ("worker token create --max-uses 100001", "from 1 to 100000"),
        ("worker token create --owner 'a b'", "'a b' is no login name"),
        ("token create --lifetime 25h", "at most 1d"),
        ("token create --refresh --lifetime 1h", "--lifetime is for access tokens"),
        ("token client create robot --owner 'a b'", "'a b' is no login name"),
        ("token client create robot --owner ada --lifetime 401d", "at most 400d"),
        ("credential store my.box", "'my.box' is no name"),
        ("credential store _box", "'_box' is no name of a service"),
        ("credential store box --handle ä", "'ä' is no name"),
        ("credential store box --file /dev/null", "/dev/null is empty"),
        ("credential store box --file /none", "/none cannot be read: No such file"),
        ("worker join https://pool.example --token-file /none", "a join token: No such file"),
        ("ban list", "kettle ban, without a name, shows who is banned"),
        ("ban 'a b'", "'a b' names nobody"),
        ("ban eve --for 10001d", "at most 10000d"),
        ("iam test --login ada --service sched", "there is no service 'sched'"),
        ("iam test --login ada --address here", "'here' is no IP address"),
    ],
)
def test_what_makes_no_sense_is_said_in_a_sentence(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], words: str, says: str
) -> None:
    """Without a pool, so nobody was asked; and with exit status 2."""
    try:
        status = main([*shlex.split(words), "--home", str(tmp_path)])
    except SystemExit as error:
        status = int(error.code or 0)
    assert (2, True) == (status, says in capsys.readouterr().err)


def test_an_empty_standard_input_is_no_credential(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "stdin", io.StringIO("\n"))
    assert 2 == main(["credential", "store", "box", "--home", str(tmp_path)])
    assert "standard input is empty" in capsys.readouterr().err


def test_a_dry_run_of_a_site_shows_the_settings_as_lines(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """And with --json as a text beside its path."""
    words = ["site", "init", "--address", "bus.example.org", "--dry-run", "--home", str(tmp_path)]
    assert 0 == main(words)
    assert "[master]" in capsys.readouterr().out.splitlines()
    assert 0 == main([*words, "--json"])
    texts = [each["text"] for each in json.loads(capsys.readouterr().out)]
    assert any("[master]\n" in text for text in texts)
