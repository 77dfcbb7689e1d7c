"""Submissions that were recorded together, as those see them who watch the pool."""

import json

from kettle_services.gateway.domain.cloud_events import Publisher, owners_in, read
from kettle_wire.events import ClustersSubmitted, Event, encode, tag_of
from kettle_wire.frames import Entry, Frame
from kettle_wire.subjects import Subjects


def frame(stream: str, event: Event) -> Frame:
    return Frame(
        "schedd.ap1", 3, 7, 41, 1_700_000_000_123_456, [Entry(stream, 1, tag_of(event), encode(event))]
    )


def test_each_is_told_of_as_if_it_had_been_recorded_alone() -> None:
    """But for the id; and whose the clusters are is known by it."""
    event = ClustersSubmitted(
        first=12, owner="alice", ad={"Cmd": "/bin/sh"}, columns=["Args"], rows=[["a"], ["b"]]
    )
    made = frame("clusters/0", event)
    told = read(made)
    assert [(12, "alice"), (13, "alice")] == list(owners_in(told))
    publisher = Publisher(Subjects("p"), limit=1 << 20)
    for cluster, one in zip((12, 13), told, strict=True):
        post = publisher.post(made, one, "alice")
        apart = frame(f"cluster/{cluster}", event.one(cluster))
        alone = publisher.post(apart, read(apart)[0], "alice")
        assert alone.subject == post.subject
        assert {**json.loads(alone.data), "id": f"schedd%2Eap1:41.{cluster}"} == json.loads(post.data)
    assert [] == read(made, after=41)
