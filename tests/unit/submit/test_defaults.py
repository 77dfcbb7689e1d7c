"""What jobs need that were made without the submit language."""

from pathlib import Path
from typing import Any

import pytest

from kettle.submit import Site, expand, parse
from kettle.submit.defaults import default_needs
from kettle_wire.ads.types import Ad, Expr, Scalar


def _text(value: Scalar) -> str:
    assert isinstance(value, Expr)
    return str(value)


SITE = Site(arch="X86_64", opsys="LINUX", file_system_domain="here", check_files=False)


@pytest.mark.parametrize(
    "more",
    [
        {},
        {"request_memory": 300, "request_cpus": 4},
        {"request_gpus": 1},
        {"should_transfer_files": "IF_NEEDED"},
        {"should_transfer_files": "NO"},
    ],
)
def test_they_are_those_of_the_submit_language(more: dict[str, Any]) -> None:
    """
    A description that says nothing of its needs, and attributes that say as little, mean the same, but that every request is looked at.
    """
    lines = "".join(f"{name} = {value}\n" for name, value in more.items())
    text = f"executable = /bin/true\n{lines}queue\n"
    made = expand(parse(text, source="d", cwd=Path("/"), environ={}), SITE).ad
    said: Ad = {
        name: made[name]
        for name in ("RequestMemory", "RequestCpus", "RequestGPUs", "ShouldTransferFiles")
        if name in made
    }
    needs = default_needs(said, [], SITE)
    wanted = set(_text(made["Requirements"]).split(" && ")) | {"(TARGET.Cpus >= RequestCpus)"}
    assert wanted == set(_text(needs["Requirements"]).split(" && "))
    assert {name: made[name] for name in needs if name != "Requirements"} == {
        name: value for name, value in needs.items() if name != "Requirements"
    }


@pytest.mark.parametrize(
    ("ad", "columns"),
    [({"requirements": True}, []), ({}, ["REQUIREMENTS"]), ({"JobUniverse": 12}, [])],
    ids=["said", "said by each", "at home"],
)
def test_who_says_it_is_believed(ad: Ad, columns: list[str]) -> None:
    """Nothing is added to Requirements that are there, and nothing to jobs that run on the access point."""
    assert {} == default_needs(ad, columns, SITE)


def test_what_each_job_has_of_its_own_has_no_default() -> None:
    """A request that is a column stays the jobs' own, and is looked at."""
    needs = default_needs({}, ["requestmemory"], SITE)
    assert "RequestMemory" not in needs
    assert "TARGET.Memory >= RequestMemory" in str(needs["Requirements"])
