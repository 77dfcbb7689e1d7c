"""
The first page of a documentation with several versions: which there are, the newest first.

    python infra/release/versions.py dist/site
"""

import html
import json
import re
import sys
from pathlib import Path

_VERSION = re.compile(r"(\d+)\.(\d+)\.(\d+)((?:a|b|rc)\d+)?")


def order(name: str) -> tuple[int, int, int, str]:
    """By which versions are sorted: before a release come its candidates."""
    found = _VERSION.fullmatch(name)
    assert found is not None, name
    return int(found[1]), int(found[2]), int(found[3]), found[4] or "~"


def main() -> int:
    """Write `versions.json`, and a page that leads to the newest version."""
    site = Path(sys.argv[1])
    names = [path.name for path in site.iterdir() if path.is_dir() and _VERSION.fullmatch(path.name)]
    names.sort(key=order, reverse=True)
    (site / "versions.json").write_text(json.dumps(names) + "\n", encoding="utf-8")
    links = "\n".join(
        f'<li><a href="{html.escape(each)}/index.html">{html.escape(each)}</a></li>' for each in names
    )
    page = f"""<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>Kettle: documentation</title>
<meta name="viewport" content="width=device-width"></head>
<body><h1>Kettle: documentation</h1><p>By version, the newest first:</p><ul>
{links}
</ul></body></html>
"""
    (site / "index.html").write_text(page, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
