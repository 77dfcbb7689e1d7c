"""
What a release is made of, as CycloneDX 1.6: itself, and every package of requirements/run.txt with its hashes.

    python infra/release/sbom.py > dist/kettle.cdx.json

It says nothing that is not in the lock and in pyproject.toml, so that the same tree gives the same file.
"""

import json
import re
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final
from uuid import NAMESPACE_URL, uuid5

TOP: Final = Path(__file__).parents[2]
_PINNED: Final = re.compile(r"([A-Za-z0-9._-]+)==([^\s;\\]+)")
_HASH: Final = re.compile(r"--hash=sha256:([0-9a-f]{64})")


def pinned(lock: str) -> Iterator[tuple[str, str, list[str]]]:
    """Name, version and hashes of each package of a lock."""
    for block in re.split(r"\n(?=[A-Za-z0-9])", lock):
        if found := _PINNED.match(block):
            yield found[1].lower().replace("_", "-"), found[2], _HASH.findall(block)


def document(lock: str, project: dict[str, Any]) -> dict[str, Any]:
    """The bill of materials."""
    name, version = project["name"], project["version"]
    components = [
        {
            "type": "library",
            "bom-ref": f"pkg:pypi/{package}@{release}",
            "name": package,
            "version": release,
            "purl": f"pkg:pypi/{package}@{release}",
            "externalReferences": [
                {
                    "type": "distribution",
                    "url": f"pkg:pypi/{package}@{release}",
                    "hashes": [{"alg": "SHA-256", "content": each}],
                }
                for each in hashes
            ],
        }
        for package, release, hashes in pinned(lock)
    ]
    own = f"pkg:pypi/{name}@{version}"
    return {
        "$schema": "http://cyclonedx.org/schema/bom-1.6.schema.json",
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "serialNumber": f"urn:uuid:{uuid5(NAMESPACE_URL, own + lock)}",
        "version": 1,
        "metadata": {
            "component": {
                "type": "application",
                "bom-ref": own,
                "name": name,
                "version": version,
                "purl": own,
                "licenses": [{"license": {"id": project["license"]}}],
            }
        },
        "components": components,
        "dependencies": [{"ref": own, "dependsOn": [each["bom-ref"] for each in components]}],
    }


def main() -> int:
    """Print it."""
    project = tomllib.loads((TOP / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    lock = (TOP / "requirements" / "run.txt").read_text(encoding="utf-8")
    sys.stdout.write(json.dumps(document(lock, project), indent=2) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
