"""
What the changelog says of one version: its section in CHANGELOG.md, if there is one yet, with the news fragments of docs/changes.

    python infra/release/changelog.py 0.2.0 2026-12-01            prints it
    python infra/release/changelog.py 0.2.0 2026-12-01 --write    moves the fragments into CHANGELOG.md
"""

import argparse
import re
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

TOP: Final = Path(__file__).parents[2]
KINDS: Final[Mapping[str, str]] = {
    "security": "Security",
    "removed": "Removed",
    "deprecated": "Deprecated",
    "changed": "Changed",
    "added": "Added",
    "fixed": "Fixed",
}
"""In the order in which a reader wants them: what he has to act on first."""
_NOTHING: Final = "\nNo release has been made yet.\n"
_VERSION: Final = re.compile(r"\d+\.\d+\.\d+")
_LINK: Final = re.compile(r"\]\(\.\./(?!\.\./)")
"""A fragment is in docs/changes, the changelog at the top."""
_DAY: Final = re.compile(r"\d{4}-\d\d-\d\d")


def fragments(directory: Path) -> Iterator[tuple[str, Path]]:
    """Each fragment with its kind, by name."""
    for path in sorted(directory.glob("*.md")):
        if path.name == "README.md":
            continue
        kind = path.name.split(".")[-2]
        if kind not in KINDS:
            raise SystemExit(f"{path}: {kind} is no kind of change; there are {', '.join(KINDS)}")
        yield kind, path


def section(version: str, day: str, directory: Path, changelog: str = "") -> str:
    """
    The text of one release, added to what the changelog has of it: each sentence of a fragment is a line of its own, and a
    fragment one entry.
    """
    _, begun, _ = _cut(changelog, version)
    title, *parts = re.split(r"^### ", begun, flags=re.MULTILINE)
    by_kind = dict.fromkeys(KINDS.values(), "")
    by_kind |= {part.partition("\n")[0]: part.partition("\n")[2].strip() + "\n" for part in parts}
    for kind, path in fragments(directory):
        text = _LINK.sub("](docs/", path.read_text(encoding="utf-8"))
        lines = [line.strip() for line in text.splitlines() if line.strip()]
        by_kind[KINDS[kind]] += "- " + "\n  ".join(lines) + "\n"
    said = [title.strip() or f"## {version} ({day})"]
    said += [f"### {title}\n\n{entries.strip()}" for title, entries in by_kind.items() if entries]
    return "\n\n".join(said) + "\n"


def with_section(changelog: str, text: str) -> str:
    """The changelog with a section before the others, or in place of the one of the same version."""
    version = text.split()[1]
    before, _, after = _cut(changelog.replace(_NOTHING, "\n"), version)
    return f"{before.rstrip()}\n\n{text}" + (f"\n{after}" if after else "")


def _cut(changelog: str, version: str) -> tuple[str, str, str]:
    """What is before the section of a version, where it is or would be; the section; what is after it."""
    head, *sections = re.split(r"^(?=## )", changelog, flags=re.MULTILINE)
    for number, text in enumerate(sections):
        if text.split()[1] == version:
            return head + "".join(sections[:number]), text, "".join(sections[number + 1 :])
    return head, "", "".join(sections)


def main() -> int:
    """Print the section, or write it and remove the fragments."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("version")
    parser.add_argument("day")
    parser.add_argument("--write", action="store_true", help="into CHANGELOG.md, and remove the fragments")
    arguments = parser.parse_args()
    if not _VERSION.fullmatch(arguments.version) or not _DAY.fullmatch(arguments.day):
        parser.error("a version as in 0.2.0, and a day as in 2026-12-01")
    directory = TOP / "docs" / "changes"
    log = TOP / "CHANGELOG.md"
    changelog = log.read_text(encoding="utf-8")
    text = section(arguments.version, arguments.day, directory, changelog)
    if not arguments.write:
        sys.stdout.write(text)
        return 0
    log.write_text(with_section(changelog, text), encoding="utf-8")
    for _, path in list(fragments(directory)):
        path.unlink()
    return 0


if __name__ == "__main__":
    sys.exit(main())
