"""
Makes `docs/reference/codes.md`: every code of ads, events and refusals.

`docs/generate.py` writes the page; by itself this module only makes its text.
"""

import inspect
from enum import Enum
from typing import Final

from kettle.schema_generation.field_descriptions import meanings
from kettle.schema_generation.markdown import one_line, table
from kettle_wire import codes

_CODES: Final[tuple[tuple[str, type[Enum]], ...]] = (
    ("Status", codes.JobStatus),
    ("Universes", codes.Universe),
    ("Reasons for a hold", codes.HoldCode),
    ("Subcodes of a hold", codes.HoldSubcode),
    ("Reasons why an attempt ended", codes.VacateCode),
    ("States of a node of a workflow", codes.NodeState),
    ("Jobs of a node", codes.NodePart),
    ("What happens to jobs of nodes", codes.NodeJobKind),
    ("Node values that are no exit code", codes.NodeValue),
    ("Status of a workflow", codes.DagStatus),
    ("Refusals", codes.RefusalCode),
)

_CODES_HEAD: Final = """\
# Codes

The numbers of HTCondor that stand in [ads](attributes.md) and [events](events.md), and the words with which commands are refused.
Programs find them in `kettle_wire.codes`; a code that is not there comes from a later version.
"""


def codes_page() -> str:
    """Every code with its name and what it means."""
    return _CODES_HEAD + "".join(_codes(title, kind) for title, kind in _CODES)


def _codes(title: str, kind: type[Enum]) -> str:
    said = meanings(kind)
    rows = [(f"`{one.value}`", f"`{one.name}`", said[one.name]) for one in kind]
    what = one_line(inspect.getdoc(kind) or "")
    return f"\n## {title}\n\n{what}\n\n{table(('code', 'name', 'meaning'), rows)}"
