from typing import get_args

from kettle.client.events.lease_sentences import ElasticEvent, elastic_sentence
from kettle.client.events.sentences import sentence
from kettle.testing.elastic_events import ELASTIC
from kettle_wire.events.lease import LeaseGone, LeaseTerminating, OfferClosed
from kettle_wire.leases import ErrorClass


def test_each_event_of_pools_of_workers_is_a_sentence() -> None:
    """Commands and pages never show the name of a type instead."""
    assert set(get_args(ElasticEvent)) == {type(event) for _, event in ELASTIC}
    for _, event in ELASTIC:
        said, _ = sentence(event)
        assert " " in said
        assert said == elastic_sentence(event)[0]  # type: ignore[arg-type]  # all of them are


def test_sentences_say_what_people_ask_for() -> None:
    """The provider's own words, how often, how long and at what cost."""
    closed = OfferClosed(words="no room", until=9.0, times=3, error=ErrorClass.CAPACITY)
    assert ("the offer is closed again (3 times in a row) (capacity): no room", "bad") == sentence(closed)
    gone = LeaseGone(words="terminated", seconds=90.0, cost=0.5, currency="EUR")
    assert "it is gone after 1 min 30 s, for 0.5 EUR: terminated" == sentence(gone)[0]
    again = LeaseTerminating(why="idle", removal=2, until=9.0)
    assert "its provider is asked to remove it again: idle" == sentence(again)[0]
