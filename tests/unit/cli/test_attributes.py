"""`--attributes`, the same of jobs, of jobs that have left the queue, and of machines."""

import argparse
import io
import json

import pytest

from kettle_services.cli.commands import module_of
from kettle_services.cli.options import attributes_of
from kettle_services.cli.output.screen import Screen
from kettle_services.cli.tables.attributes import chosen, show_attributes
from kettle_wire.ads.types import Ad, Expr

ADS: list[Ad] = [
    {"ClusterId": 1, "Cmd": "/bin/a b", "Requirements": Expr("TARGET.Cpus > 1")},
    {"clusterid": 22, "Cmd": "x"},
]


def test_a_line_for_each_ad() -> None:
    """Letters are compared without case, an expression stands as it is, what is not there is undefined."""
    out = io.StringIO()
    show_attributes(ADS, ["ClusterId", "Requirements"], Screen(out=out))
    lines = [line.split(maxsplit=1) for line in out.getvalue().splitlines()]
    assert [["1", "TARGET.Cpus > 1"], ["22", "undefined"]] == lines[1:]


def test_of_whole_ads_only_these() -> None:
    """For JSON; without names it is all."""
    assert {"clusterid": 22} == chosen(ADS[1], ["ClusterId", "Requirements"])
    assert ADS[0] == chosen(ADS[0], [])


@pytest.mark.parametrize("command", ["q", "history", "status"])
def test_listings_of_ads_take_it(command: str) -> None:
    """Spelt alike."""
    parser = argparse.ArgumentParser()
    __import__(module_of(command), fromlist=["arguments"]).arguments(parser)
    assert ["A", "B"] == attributes_of(parser.parse_args(["--attributes", "A, B"]))


@pytest.mark.parametrize("command", ["q", "why"])
@pytest.mark.parametrize("word", ["--all-users", "--all"])
def test_questions_about_everybodys_jobs_say_so(command: str, word: str) -> None:
    """The short word stays for scripts; where jobs are acted on it means one's own."""
    parser = argparse.ArgumentParser()
    __import__(module_of(command), fromlist=["arguments"]).arguments(parser)
    assert parser.parse_args([word]).all


def test_json_is_for_who_asks_for_it(capsys: pytest.CaptureFixture[str]) -> None:
    """A listing that is piped is the same table as on a terminal."""
    from kettle_services.cli.commands import userprio
    from kettle_wire.commands.negotiator import Priorities

    found = Priorities(at=0.0, half_life=3600.0, submitters=[])
    userprio.show(found, Screen())
    assert "SUBMITTER" in capsys.readouterr().out
    userprio.show(found, Screen(as_json=True))
    assert [] == json.loads(capsys.readouterr().out)["submitters"]
