"""`kettle schema`: the wire contract, for programs in any language."""

import argparse
from typing import Final

from kettle.terminal.nearest_names import nearest
from kettle_services.cli.errors import UsageError
from kettle_services.cli.options import json_option
from kettle_services.cli.output.screen import Screen

HELP: Final = """\
Schemas for programs that read events or send commands to services: JSON Schemas (2020-12), and everything on the
bus as one AsyncAPI 3.0 document.  They are generated from the installed code; no pool is needed.
What is msgpack on the bus is described as the JSON that it corresponds to, with bytes as base64.

examples:
  kettle schema                           what there is
  kettle schema job.completed/2           a type of event, as it is recorded
  kettle schema schedd.submit.request     a command; .reply is its answer
  kettle schema monitoring/cloudevent     the envelope of published events
  kettle schema asyncapi > asyncapi.json  all subjects, with their messages
"""

ASYNCAPI: Final = "asyncapi"


def arguments(parser: argparse.ArgumentParser) -> None:
    """What the command takes."""
    parser.add_argument(
        "name", nargs="?", metavar="NAME", help="what to print (default: a list of what there is)"
    )
    json_option(parser)


def run(arguments: argparse.Namespace, screen: Screen) -> int:
    """List the documents, or print one."""
    from kettle.schema_generation import asyncapi, documents, text

    found = documents()
    names = {path.removesuffix(".json"): document for path, document in found.items()}
    if arguments.name is None:
        rows = [
            (name, " ".join(str(document.get("description", document["title"])).split("\n\n")[0].split()))
            for name, document in names.items()
        ]
        rows.append((ASYNCAPI, "all channels and messages, AsyncAPI 3.0"))
        if screen.as_json:
            screen.json(dict(rows))
        else:
            screen.table(("name", "describes"), rows)
        return 0
    if arguments.name == ASYNCAPI:
        screen.octets(text(asyncapi()))
        return 0
    wanted: str = arguments.name.removesuffix(".json").replace("/", ".")
    for name, document in names.items():
        if wanted in {name.replace("/", "."), name.partition("/")[2]}:
            screen.octets(text(document))
            return 0
    short = [name.partition("/")[2] for name in names]
    close = nearest(wanted, short)
    hint = f"did you mean {close}?" if close else "see kettle schema"
    raise UsageError(f"there is no schema '{arguments.name}'; {hint}")
