"""Our job ads beside those that HTCondor 24.12 made of the same descriptions."""

import re
from pathlib import Path

import msgspec
import pytest

from kettle.classad import parse as parse_expression
from kettle.classad import unparse
from kettle.submit import CLUSTER, Site, SubmitError, expand, parse
from kettle_services.schedd.domain.submission.accounting_group import completed
from kettle_wire.ads.types import Ad, Expr

DATA = Path(__file__).parent / "data/submit-vectors.jsonl"
HEAD = "universe = vanilla\nexecutable = /bin/sleep\n"
IWD = Path("/home/somebody")
SITE = Site(
    arch="X86_64", opsys="LINUX", file_system_domain="example.org", check_files=False, request_disk_minimum=1
)

DIFFERENT = {
    "env = A=1": "the old syntax is always converted: one attribute for one meaning",
    "when_to_transfer_output = NEVER": "refused: nobody would find out that it means nothing",
    "when_to_transfer_output = ON_SUCCESS": "no clause about HTCondor's version: every machine here can do it",
    "preserve_relative_paths": "the same",
    "universe = local": "it has a sandbox, a lease and a soft kill signal as all jobs have",
    "universe = scheduler": "it has a sandbox, a lease and a soft kill signal as all jobs have",
    "project_name": "always kept: there it is left out unless the access point was told of projects",
    "checkpoint_destination": "the machine must be able to send files there: it is told before the job has worked; and objects are refused",
    "transfer_checkpoint_files": "no clause about HTCondor's version: every machine here can do it",
    "retry_request_memory": "HTCondor 24.12 did not know it yet",
    "/bin/sleep\nmachine_count": "refused: it would run on one machine",
    "universe = grid": "it has a lease, and asks for what all jobs ask for: the batch system is asked for that",
}
"""Parts of descriptions for which a difference is meant, and why."""

GROUPS = {"physics": ["*"], "physics.atlas": ["*"]}
"""Accounting groups, which everybody may use."""

MEASURED = {"DiskUsage"}
"""What depends on the files of the machine on which the vectors were made."""


class Vector(msgspec.Struct):
    submit: str
    changed: dict[str, str]


def vectors() -> list[Vector]:
    return [msgspec.json.decode(line, type=Vector) for line in DATA.read_text().splitlines()]


def job_ad(text: str, owner: str = "alice") -> Ad:
    """As it is recorded: the access point says with whose name a job is charged."""
    ad = expand(parse(text, source="job.sub", cwd=IWD, environ={}, tolerant=True), SITE).job(0)
    return completed(ad, [], [[]], owner=owner, members=GROUPS)[0]


def shown(value: object) -> str:
    text = value.expr if isinstance(value, Expr) else unparse(value)  # type: ignore[arg-type]
    return canonical(text.replace(CLUSTER, "1"))


def canonical(text: str) -> str:
    return unparse(parse_expression(text))


def changes(ad: Ad, base: Ad) -> dict[str, str]:
    new = {
        name: shown(value) for name, value in ad.items() if base.get(name) != value and name not in MEASURED
    }
    return new | {name: "<absent>" for name in base if name not in ad}


def agrees(vector: Vector) -> bool:
    wanted = vector.changed
    try:
        owner = wanted.get("AcctGroupUser", '"alice"').strip('"')
        ours = changes(job_ad(vector.submit, owner), job_ad(f"{HEAD}queue\n"))
    except SubmitError:
        return "ERROR" in wanted
    expected = {
        name: text if text == "<absent>" else canonical(text.replace("$IWD", str(IWD)))
        for name, text in wanted.items()
        if name not in {"ERROR", *MEASURED}
    }
    return ours == expected and "ERROR" not in wanted


def test_enough_is_compared() -> None:
    """All vectors but those for which a difference is meant."""
    meant = [vector for vector in vectors() if any(part in vector.submit for part in DIFFERENT)]
    assert (195, 15) == (len(vectors()), len(meant))


@pytest.mark.parametrize("vector", vectors(), ids=lambda v: re.sub(r"\W+", "-", v.submit[len(HEAD) :])[:60])
def test_job_ads_agree(vector: Vector) -> None:
    """A description changes the same attributes to the same values, or is refused by both."""
    if any(part in vector.submit for part in DIFFERENT):
        pytest.skip("a difference that is meant")
    assert agrees(vector), vector.submit


def test_every_meant_difference_exists() -> None:
    """The list of differences does not outlive its reasons."""
    for part in DIFFERENT:
        matching = [vector for vector in vectors() if part in vector.submit]
        assert matching, part
        assert not any(agrees(vector) for vector in matching), part
