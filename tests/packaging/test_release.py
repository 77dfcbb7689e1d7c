"""
What a release is made of: a changelog from its fragments, a bill of materials from the lock, the same files
each time.
"""

import importlib.util
import json
import os
import re
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from kettle import VERSION

LONG = "KETTLE_TEST_LONG"


def script(top: Path, name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(f"release_{name}", top / "infra" / "release" / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_fragments_become_a_section(top: Path, tmp_path: Path) -> None:
    """What one has to act on comes first, each fragment is an entry, each sentence keeps its line."""
    changelog = script(top, "changelog")
    (tmp_path / "README.md").write_text("no fragment")
    (tmp_path / "b.added.md").write_text("It does more.\nMuch more.\n")
    (tmp_path / "24-a.security.md").write_text("It is [safe](../how-to/safe.md).\n")
    text = changelog.section("0.2.0", "2026-12-01", tmp_path)
    assert (
        "## 0.2.0 (2026-12-01)\n\n### Security\n\n- It is [safe](docs/how-to/safe.md).\n\n### Added\n\n- It does more.\n  Much more.\n"
        == text
    )
    first = changelog.with_section("# Changelog\n\nWords.\n\nNo release has been made yet.\n", text)
    assert f"# Changelog\n\nWords.\n\n{text}" == first
    second = changelog.with_section(first, "## 0.3.0 (2027-01-01)\n")
    assert second.index("## 0.3.0") < second.index("## 0.2.0")
    (tmp_path / "c.improved.md").write_text("?")
    with pytest.raises(SystemExit, match="improved"):
        changelog.section("0.2.0", "2026-12-01", tmp_path)


def test_fragments_join_the_section_that_is_there(top: Path, tmp_path: Path) -> None:
    """A version that is not released yet may have its section already: nothing of it is lost, and another's stays as it is."""
    changelog = script(top, "changelog")
    before = "# Changelog\n\n## 0.2.0 (2026-12-01)\n\nIn short.\n\n### Fixed\n\n- One.\n\n## 0.1.0 (2026-01-01)\n\nOld.\n"
    assert before == changelog.with_section(before, changelog.section("0.2.0", "x", tmp_path, before))
    (tmp_path / "two.fixed.md").write_text("Two.\n")
    (tmp_path / "three.added.md").write_text("Three.\n")
    after = changelog.with_section(before, changelog.section("0.2.0", "2027-01-01", tmp_path, before))
    assert "In short.\n\n### Added\n\n- Three.\n\n### Fixed\n\n- One.\n- Two.\n\n## 0.1.0" in after
    assert 1 == after.count("## 0.2.0 (2026-12-01)")


def test_every_fragment_is_in_the_changelog(top: Path) -> None:
    """The section of the next release has the words of each."""
    changelog = script(top, "changelog")
    text = changelog.section("0.2.0", "2026-12-01", top / "docs" / "changes")
    for _, path in changelog.fragments(top / "docs" / "changes"):
        assert path.read_text().splitlines()[0].strip().replace("](../", "](docs/") in text, path


def test_the_bill_of_materials_is_the_lock(top: Path, pyproject: dict[str, Any]) -> None:
    """
    Each pinned package is a component with its hashes, and nothing else is; the same lock gives the same text.
    """
    sbom = script(top, "sbom")
    lock = (top / "requirements" / "run.txt").read_text()
    made = sbom.document(lock, pyproject["project"])
    assert made == sbom.document(lock, pyproject["project"])
    assert lock.count("==") - lock.count("'==") <= len(made["components"]) + lock.count("python_")
    names = {each["name"]: each for each in made["components"]}
    assert {"asyncpg", "nats-py", "msgspec"} <= set(names)
    for each in made["components"]:
        assert each["externalReferences"], each["name"]
        assert all(len(one["hashes"][0]["content"]) == 64 for one in each["externalReferences"])
    assert {each["bom-ref"] for each in made["components"]} == set(made["dependencies"][0]["dependsOn"])


def test_versions_are_sorted_as_versions(top: Path) -> None:
    """0.10 comes after 0.9, and a candidate before its release."""
    order = script(top, "versions").order
    names = ["0.9.0", "0.10.0", "0.10.0rc1", "0.2.1"]
    assert ["0.2.1", "0.9.0", "0.10.0rc1", "0.10.0"] == sorted(names, key=order)


@pytest.mark.skipif(
    LONG not in os.environ, reason=f"it takes minutes: two builds of a release ({LONG}=1 makes them)"
)
def test_two_builds_are_the_same(top: Path, tmp_path: Path) -> None:
    """
    From two directories at two times; the sums are signed, and the signature is checked as the page says.
    """
    key = tmp_path / "key"
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "", "-f", str(key)], check=True)
    sums: list[str] = []
    tree = tmp_path
    for name in ("one", "two"):
        tree = tmp_path / name
        subprocess.run(["git", "clone", "--quiet", "--no-hardlinks", str(top), str(tree)], check=True)
        environ = {**os.environ, "KETTLE_RELEASE_PYTHON": sys.executable}
        subprocess.run(
            ["infra/release/build", str(key)], cwd=tree, check=True, env=environ, stdout=subprocess.DEVNULL
        )
        sums.append((tree / "dist" / "SHA256SUMS").read_text())
    assert sums[0] == sums[1]
    assert ".whl" in sums[0]
    (tmp_path / "signers").write_text(f"release {(tmp_path / 'key.pub').read_text()}")
    with (tree / "dist" / "SHA256SUMS").open() as signed:
        words = [
            "ssh-keygen",
            "-Y",
            "verify",
            "-f",
            str(tmp_path / "signers"),
            "-I",
            "release",
            "-n",
            "kettle-release",
        ]
        subprocess.run([*words, "-s", str(tree / "dist" / "SHA256SUMS.sig")], stdin=signed, check=True)
    json.loads(next((tree / "dist").glob("*.cdx.json")).read_text())


@pytest.mark.skipif(
    LONG not in os.environ, reason=f"it takes minutes: the documentation as pages ({LONG}=1 makes them)"
)
def test_the_site_is_built_and_its_links_lead_somewhere(top: Path, tmp_path: Path) -> None:
    """With strict checks, and without scripts or fonts of other servers."""
    subprocess.run([str(top / "infra" / "release" / "site"), str(tmp_path)], check=True)
    (version,) = json.loads((tmp_path / "versions.json").read_text())
    pages = list((tmp_path / version).rglob("*.html"))
    assert len(pages) > 200
    for page in pages:
        text = page.read_text()
        assert 'src="http' not in text, page
        assert 'rel="stylesheet" href="http' not in text, page


def test_the_version_is_one_that_the_bus_takes() -> None:
    """
    Services say it in a form (major.minor.patch) of which a client of NATS refuses all others, so no service
    would start.
    """
    assert re.fullmatch(r"\d+\.\d+\.\d+", VERSION)
