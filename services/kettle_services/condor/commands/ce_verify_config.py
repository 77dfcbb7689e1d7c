"""condor_ce_verify_config: whether a compute entrypoint can use its routes."""

import os
import sys
import time
from pathlib import Path
from typing import Final

from kettle.client.connections.condor_config import CondorConfig
from kettle_services.condor.arguments.grammar import Option, understood
from kettle_services.condor.connections.pool_client import client_of
from kettle_services.condor.errors import ToolError, WordsError

OPTIONS: Final = {"name": Option(takes=1), "pool": Option(takes=1), "quiet": Option()}
HELP: Final = {
    "condor_ce_verify_config": """\
usage: condor_ce_verify_config [options] [FILE]

Check the routes of a compute entrypoint, or those of a file: what is wrong in them, and what only looks so.  The exit status is 1 if an
entrypoint refuses them, or if it has refused a newer file than the one in force.

  -quiet                 only what is wrong
  -name SCHEDD, -pool P  whose entrypoint
""",
}


def run(name: str, words: list[str]) -> int:
    """Check, and say what is wrong."""
    from kettle.routes import check, samples

    places = {"file": "", "name": "", "pool": "", "quiet": ""}
    for given in understood(words, OPTIONS):
        key = given.name or "file"
        if not given.name and places["file"]:
            raise WordsError(f"'{given.values[0]}' is one file too many")
        places[key] = given.values[0] if given.values else "yes"
    problems: list[str] = []
    if places["file"]:
        source = places["file"]
        try:
            text = Path(source).read_text(encoding="utf-8", errors="surrogateescape")
        except OSError as error:
            raise ToolError(f"{name}: cannot read {source}: {error.strerror}") from error
    else:
        client = client_of(CondorConfig(os.environ), pool=places["pool"], name=places["name"])
        shown = client.run(lambda pool: pool.entrypoint.routes())
        text, source, problems = shown.text, shown.source, list(shown.problems)
    report = check(text, source, samples(), int(time.time()))
    problems += (f"{source}: {problem}" for problem in report.refused)
    sys.stderr.writelines(f"ERROR: {problem}\n" for problem in problems)
    if not places["quiet"]:
        sys.stdout.writelines(f"WARNING: {source}: {problem}\n" for problem in report.warnings)
    if not problems and not places["quiet"]:
        sys.stdout.write(f"{source}: {len(report.table.routes) if report.table else 0} routes can be used\n")
    return int(bool(problems))
