"""The AsyncAPI document says of subjects and messages what the code does."""

import json
import re
from typing import Any

import pytest

from kettle.schema_generation import asyncapi
from kettle_wire import cloud_events
from kettle_wire.commands.catalogue import ENDPOINTS
from kettle_wire.identity import user
from kettle_wire.subjects import Subjects

SUBJECTS = Subjects("main")
NAMES = {
    "pool": "main",
    "shard": "negotiator",
    "owner": "ann",
    "cluster": "12",
    "proc": "3",
    "type": "job.held",
    "schedd": "ap1",
    "startd": "node1",
    "name": "ap1",
    "caller": "u-ann",
}


@pytest.fixture(scope="module")
def document() -> dict[str, Any]:
    return asyncapi()


def address(document: dict[str, Any], channel: str) -> str:
    return str(document["channels"][channel]["address"]).format(**NAMES)


def test_the_addresses_are_the_subjects(document: dict[str, Any]) -> None:
    """Who fills in an address has the subject that the services use."""
    expected = {
        "frames": SUBJECTS.events("negotiator"),
        "tail": SUBJECTS.tail("ann", 12, 3, "job.held"),
        "tailPool": SUBJECTS.tail_pool("job.held"),
        "monitor": SUBJECTS.monitor("ann", "job.held"),
        "work": SUBJECTS.work("ap1", "node1"),
        "scheddNotice": SUBJECTS.notice("schedd", "ap1"),
        "startdNotice": SUBJECTS.notice("startd", "ap1"),
    }
    commands = {
        f"{e.role}.{e.verb}": SUBJECTS.command(e.role, "ap1", e.verb, user("ann").token) for e in ENDPOINTS
    }
    replies = {f"{name}.replies" for name in commands}
    assert set(expected | commands) | replies == set(document["channels"])
    assert expected | commands == {name: address(document, name) for name in expected | commands}


def test_every_parameter_is_described(document: dict[str, Any]) -> None:
    """What stands in braces in an address is explained below it, and nothing else is."""
    for channel in document["channels"].values():
        named = {part.partition("}")[0] for part in (channel["address"] or "").split("{")[1:]}
        assert named == set(channel.get("parameters", ()))


def test_every_published_event_has_a_message(document: dict[str, Any]) -> None:
    """Each type that is published is on exactly one of the live channels: of jobs, or of the pool."""
    live = [set(document["channels"][name]["messages"]) for name in ("tail", "tailPool")]
    assert {tag.replace("/", ".") for tag in cloud_events.TYPES.values()} == live[0] | live[1]
    assert set() == live[0] & live[1]


def test_every_reference_leads_somewhere(document: dict[str, Any]) -> None:
    """The document stands on its own."""
    found = set(re.findall(r'"\$ref": "([^"]*)"', json.dumps(document)))
    assert found
    for reference in found:
        target: Any = document
        for name in reference.removeprefix("#/").split("/"):
            target = target[name]
        assert target
