"""
The documents hang together.
"""

import re
from collections import Counter
from pathlib import Path

KINDS = {"added", "changed", "deprecated", "removed", "fixed", "security"}
_LINK = re.compile(r"\]\((?!\w+:|#)([^)#\s]+)[^)]*\)")


def test_relative_links_lead_somewhere(top: Path) -> None:
    """
    A reader who follows a link inside the repository arrives.
    """
    pages = [*top.glob("*.md"), *(top / "docs").rglob("*.md"), *(top / "services").rglob("*.md")]
    broken = [
        f"{page.relative_to(top)}: {target}"
        for page in pages
        for target in _LINK.findall(page.read_text())
        if not (page.parent / target).exists()
    ]
    assert [] == broken


def test_decisions_have_one_number_each(top: Path) -> None:
    """
    A decision is cited by its number, so the number is four digits and nobody else's.
    """
    names = [page.name for page in (top / "docs/decisions").glob("*.md") if page.name != "README.md"]
    assert names
    assert [] == [name for name in names if not re.fullmatch(r"\d{4}-[a-z0-9-]+\.md", name)]
    assert [] == [n for n, times in Counter(name[:4] for name in names).items() if times > 1]


def test_news_fragments_are_named_by_kind(top: Path) -> None:
    """
    A release sorts the fragments by the second part of their names.
    """
    names = [page.name for page in (top / "docs/changes").iterdir() if page.name != "README.md"]
    kinds = [re.fullmatch(r"[a-z0-9-]+\.([a-z]+)\.md", name) for name in names]
    assert [] == [n for n, k in zip(names, kinds, strict=True) if k is None or k[1] not in KINDS]
