"""
Index templates for OpenSearch (from 1.0) and Elasticsearch (from 7.8); `docs/generate.py` writes them beside this file.

    PUT /_index_template/kettle-jobs   with kettle-jobs.json
"""

from collections.abc import Mapping
from typing import Any, Final

from kettle.projections.accounting_documents import ATTEMPT_FIELDS, JOB_FIELDS, LONGEST
from kettle.projections.lease_documents import LEASE_FIELDS

_KEYWORD: Final = {"type": "keyword", "ignore_above": LONGEST}
_EVENT_FIELDS: Final[Mapping[str, dict[str, Any]]] = {
    "time": {"type": "date"},
    **dict.fromkeys(("id", "source", "type", "subject", "stream", "frame", "owner", "schedd"), _KEYWORD),
    "version": {"type": "long"},
    "epoch": {"type": "long"},
    # Its fields are those of a hundred types of events: one name is a number here and a text there.
    "data": {"type": "object", "enabled": False},
}


def documents() -> dict[str, dict[str, Any]]:
    """File name -> template."""
    return {
        "kettle-jobs.json": _template("kettle-jobs", _typed(JOB_FIELDS)),
        "kettle-attempts.json": _template("kettle-attempts", _typed(ATTEMPT_FIELDS)),
        "kettle-leases.json": _template("kettle-leases", _typed(LEASE_FIELDS)),
        "kettle-events.json": _template("kettle-events", _EVENT_FIELDS),
    }


def _typed(fields: Mapping[str, str]) -> dict[str, dict[str, Any]]:
    forms: dict[str, dict[str, Any]] = {
        "date": {"type": "date", "format": "epoch_second"},
        "keyword": _KEYWORD,
    }
    return {name: forms.get(kind, {"type": kind}) for name, kind in sorted(fields.items())}


def _template(index: str, fields: Mapping[str, Any]) -> dict[str, Any]:
    """What is not listed is text that is not taken apart into words."""
    return {
        "index_patterns": [f"{index}*"],
        "priority": 100,
        "template": {
            "mappings": {
                "dynamic_templates": [{"texts": {"match_mapping_type": "string", "mapping": _KEYWORD}}],
                "properties": dict(fields),
            }
        },
    }
