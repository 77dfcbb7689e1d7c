"""Which addresses of stores are refused before anything is sent."""

import pytest

from kettle.projections.accounting_documents import Record
from kettle_services.accounting.elasticsearch import NotNowError, outcomes
from kettle_services.accounting.store_addresses import check


@pytest.mark.parametrize(
    ("url", "credentials", "says"),
    [
        ("https://store.example.org:9200", "c.json", ""),
        ("https://store.example.org/es", "", ""),
        ("http://127.0.0.1:9200", "c.json", ""),
        ("http://[::1]:9200", "c.json", ""),
        ("http://store.example.org:9200", "", ""),
        ("http://store.example.org:9200", "c.json", "must begin with https://"),
        ("https://ada:secret@store.example.org", "", "which anybody could read"),
        ("store.example.org:9200", "", "none of http:// or https://"),
        ("https://", "", "none of http:// or https://"),
        ("https://[::1", "", "is no URL"),
    ],
)
def test_addresses(url: str, credentials: str, says: str) -> None:
    """No password in an address, and none over a network in the clear."""
    found = check(url, credentials)
    assert bool(found) == bool(says)
    assert says in found
    assert "secret" not in found


@pytest.mark.parametrize(
    ("data", "says"),
    [
        (b"not json", "none of the bulk protocol"),
        (b'{"items": []}', "answered for 0 records"),
        (b'{"items": [{"index": {"_id": "b", "status": 201}}]}', "not the 1 that were sent"),
        (b"\xff\xfe", "none of the bulk protocol"),
    ],
)
def test_an_answer_about_something_else_takes_nothing(data: bytes, says: str) -> None:
    """Only a yes to this very record counts."""
    with pytest.raises(NotNowError, match=says):
        outcomes([Record("a", {})], data)


def test_each_item_has_a_status_of_its_own() -> None:
    """201 and 200 are taken, 429 and 503 come again, all else is refused with the reason."""
    statuses = {"a": 201, "b": 429, "c": 400, "d": 200, "e": 503}
    items = ",".join(
        f'{{"index": {{"_id": "{name}", "status": {status}, "error": {{"type": "t", "reason": "r"}}}}}}'
        for name, status in statuses.items()
    )
    records = [Record(name, {}) for name in statuses]
    found = outcomes(records, f'{{"errors": true, "items": [{items}]}}'.encode())
    assert (["a", "d"], ["b", "e"], [("c", "400 t: r")]) == (
        [record.id for record in found.taken],
        [record.id for record in found.later],
        [(record.id, why) for record, why in found.refused],
    )
