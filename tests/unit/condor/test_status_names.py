"""Which ads condor_status means by a name."""

import pytest

from kettle_services.condor.commands.status import named
from kettle_services.condor.printing.values import AdRow
from kettle_wire.ads.types import Ad

SCHEDD: Ad = {"Name": "schedd", "Machine": "ap.example"}
SLOT: Ad = {"Name": "slot1@worker.example", "Machine": "worker.example"}
BARE: Ad = {"Name": "submitter"}


@pytest.mark.parametrize(
    ("said", "meant"),
    [
        ("schedd", [SCHEDD]),
        ("Schedd@AP", [SCHEDD]),
        ("schedd@ap.example", [SCHEDD]),
        ("schedd@worker", []),
        ("ap", [SCHEDD]),
        ("worker.example", [SLOT]),
        ("slot1@worker.example", [SLOT]),
        ("work", []),
        ("submitter", [BARE]),
    ],
)
def test_ads_are_meant_by_name_and_machine(said: str, meant: list[Ad]) -> None:
    """Whatever an ad lacks, nothing but a match is true of it, beside other names too."""
    for condition in (named(said), f"{named('nobody')} || {named(said)}"):
        assert meant == [ad for ad in (SCHEDD, SLOT, BARE) if AdRow(ad).value(condition) is True]
