"""
Makes `docs/reference/requests.md`: every command that a service answers, by its declaration.

`docs/generate.py` writes the page; by itself this module only makes its text.
"""

import sys
from itertools import groupby
from typing import Any, Final

from kettle_wire.commands.catalogue import ENDPOINTS
from kettle_wire.endpoint import Endpoint, Repeat

_REPEATS: Final = {
    Repeat.QUERY: "changes nothing",
    Repeat.FIRST_ANSWER: "gets the first answer, by `id`",
    Repeat.HARMLESS: "changes nothing more",
}


def requests_page() -> str:
    """The page, below its first line."""
    parts = [_HEAD]
    ordered = sorted(ENDPOINTS, key=lambda endpoint: endpoint.role)
    for role, endpoints in groupby(ordered, lambda endpoint: endpoint.role):
        parts.append(f"\n## Asked of `{role}`\n\n")
        parts.append(
            "| verb | what | for | a repeat | largest | request, reply |\n|---|---|---|---|---|---|\n"
        )
        parts += map(_row, endpoints)
    return "".join(parts)


def _row(endpoint: Endpoint[Any, Any]) -> str:
    what = (
        " ".join((endpoint.request.__doc__ or "").split()).partition(". ")[0].rstrip(".").replace("|", "\\|")
    )
    callers = ", ".join(sorted(endpoint.callers))
    schema = f"../../schemas/json/commands/{endpoint.role}.{endpoint.verb}"
    size = "" if endpoint.largest == sys.maxsize else f"{endpoint.largest // 1024} KiB"
    links = f"[request]({schema}.request.json), [reply]({schema}.reply.json)"
    cells = (f"`{endpoint.verb}`", what, callers, _REPEATS[endpoint.repeat], size, links)
    return f"| {' | '.join(cells)} |\n"


_HEAD: Final = """# Requests

What services ask of each other, and people, jobs and other pools of them: request and reply over the bus, in MessagePack, on
`kettle.<pool>.cmd.<role>.<name>.<verb>.<caller>`.  Each row is one declaration in `kettle_wire.commands`; what a caller may publish
on the bus, whom a service refuses and how clients repeat follow from it.  [How to add one](../how-to/add-a-command.md).

*For*: `user` is a person, for that person's own jobs; `administrator` one whom the service's settings name; `job` a running job in
its owner's name, which was submitted with `want_pool_access = true`; `visitor` a schedd of another pool with its shadow; the
others are daemons of the pool.  Without a size of its own a request may have 64 MiB.  Refusals are
[one message](../../schemas/json/commands/refusal.json) with a [code](codes.md).
"""
