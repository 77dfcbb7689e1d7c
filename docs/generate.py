#!/usr/bin/env python3
"""
Makes what follows from the code: the pages of `docs/reference` on attributes, codes, settings, commands and events,
the pictures of the imports and of the starter's states, the dashboards of `infra/grafana`, the templates of `infra/opensearch`, `schemas/json` and
`schemas/telemetry`.

    .venv/bin/python docs/generate.py            writes them
    .venv/bin/python docs/generate.py --check    says which ones are not what the code makes of them

The schemas are promises: nothing is written over one that the code does not keep any more; see
docs/explanation/event-evolution.md.

`tests/packaging` holds the committed pages to this, so a setting, an option or an event without a page is a failing test.
"""

import argparse
import runpy
import sys
from pathlib import Path
from typing import Any, Final

import msgspec

from kettle.schema_generation import Document, asyncapi, breaks, documents, incompatible, openapi, text

TOP: Final = Path(__file__).parents[1]
PAGES: Final = TOP / "docs" / "reference"
EXPLANATION: Final = TOP / "docs" / "explanation"
SCHEMAS: Final = TOP / "schemas" / "json"
TELEMETRY: Final = TOP / "schemas" / "telemetry" / "telemetry.json"
OPENSEARCH: Final = TOP / "infra" / "opensearch"
GRAFANA: Final = TOP / "infra" / "grafana"

_MADE: Final = (
    "<!-- Made by docs/generate.py from the code.  Do not edit: change the code and run it again. -->\n"
)
_PAGES: Final = {
    "attributes.md": ("list_attributes", "attributes_page"),
    "codes.md": ("list_codes", "codes_page"),
    "submit-commands.md": ("list_submit_commands", "submit_commands_page"),
    "settings.md": ("list_settings", "settings_page"),
    "commands.md": ("list_commands", "commands_page"),
    "condor-commands.md": ("list_commands", "condor_page"),
    "condor-config.md": ("list_condor_config", "condor_config_page"),
    "events.md": ("list_events", "events_page"),
    "packages.md": ("list_packages", "packages_page"),
    "documents.md": ("list_documents", "documents_page"),
    "rest.md": ("list_routes", "rest_page"),
    "telemetry.md": ("list_signals", "telemetry_page"),
    "starter-machine.md": ("draw_starter", "starter_page"),
    "job-machine.md": ("draw_job", "job_page"),
    "claim-machine.md": ("draw_claims", "claims_page"),
    "requests.md": ("list_requests", "requests_page"),
}
"""Page -> the module beside this one, and its function, that make its text below the first line."""
_PICTURES: Final = {
    "imports.svg": ("draw_imports", "imports_picture"),
    "starter-machine.svg": ("draw_starter", "starter_picture"),
    "job-phases.svg": ("draw_job", "job_picture"),
    "attempt-phases.svg": ("draw_job", "attempt_picture"),
    "claim-phases.svg": ("draw_claims", "claim_picture"),
    "slot-states.svg": ("draw_slots", "slots_picture"),
}


def _made_by(module: str, function: str) -> Any:
    return runpy.run_path(str(Path(__file__).with_name(f"{module}.py")))[function]()


def pages() -> dict[str, str]:
    """File name -> text."""
    return {name: f"{_MADE}\n{_made_by(*maker)}" for name, maker in _PAGES.items()}


def pictures() -> dict[str, str]:
    """File name -> text."""
    return {name: _made_by(*maker) for name, maker in _PICTURES.items()}


def schemas() -> dict[str, Document]:
    """File name -> document."""
    return {**documents(), "asyncapi.json": asyncapi(), "openapi.json": openapi()}


def published() -> dict[str, Document]:
    """The schemas that were written last, by file name."""
    return {
        path.relative_to(SCHEMAS).as_posix(): msgspec.json.decode(path.read_bytes())
        for path in sorted(SCHEMAS.rglob("*.json"))
    }


def files() -> dict[Path, bytes]:
    """Everything that is made."""
    made = {PAGES / name: page.encode() for name, page in pages().items()}
    made |= {EXPLANATION / name: picture.encode() for name, picture in pictures().items()}
    dashboards = runpy.run_path(str(GRAFANA / "make_dashboards.py"))["documents"]()
    templates = runpy.run_path(str(OPENSEARCH / "make_templates.py"))["documents"]()
    made |= {OPENSEARCH / name: text(document) for name, document in templates.items()}
    made[TELEMETRY] = text(_made_by("list_signals", "telemetry_document"))
    made |= {GRAFANA / "dashboards" / name: text(document) for name, document in dashboards.items()}
    return made | {SCHEMAS / name: text(document) for name, document in schemas().items()}


def main() -> int:
    """Write the files, or compare them."""
    parser = argparse.ArgumentParser(
        description="Make the reference pages and schemas that follow from the code."
    )
    parser.add_argument(
        "--check", action="store_true", help="write nothing; exit status 1 if a file is stale"
    )
    check = parser.parse_args().check
    before = published()
    broken = incompatible(before, schemas())
    if "openapi.json" in before:
        broken += breaks(before["openapi.json"], openapi())
    if broken:
        sys.stdout.write("\n".join(broken) + "\n")
        return 1
    made = files()
    stale = [path for path, content in made.items() if not path.exists() or path.read_bytes() != content]
    gone = [SCHEMAS / name for name in before if SCHEMAS / name not in made]
    for path in stale:
        if not check:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(made[path])
        sys.stdout.write(f"{path.relative_to(TOP)} {'is stale' if check else 'written'}\n")
    for path in gone:
        if not check:
            path.unlink()
        sys.stdout.write(f"{path.relative_to(TOP)} {'is left over' if check else 'removed'}\n")
    return 1 if check and (stale or gone) else 0


if __name__ == "__main__":
    raise SystemExit(main())
