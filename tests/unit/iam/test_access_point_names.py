"""Which names access points may have that join."""

from pathlib import Path

import pytest

from kettle.auth.trust.keys import KeyPair, Kind
from kettle_services.iam.bus_credentials import SERVICES, ScopedSigningKey
from kettle_services.iam.domain.refusals import Denied
from kettle_wire.subjects import Subjects


def office(directory: Path) -> ScopedSigningKey:
    for name in ("account-JOINED", *(f"sign-{role}" for role in SERVICES)):
        (directory / f"{name}.nk").write_text(KeyPair.new(Kind.ACCOUNT).seed)
    return ScopedSigningKey("A", directory / "sign-schedd.nk", trust=directory)


def test_no_access_point_has_the_stream_of_a_queue_with_a_dot(tmp_path: Path) -> None:
    """The events of both would be in streams of one name, and what reads them is ruled by that."""
    subjects = Subjects("pool")
    assert subjects.event_stream("schedd.ap.lab") == subjects.event_stream("schedd.ap_2Elab")
    bus = office(tmp_path)
    with pytest.raises(Denied, match="_2E"):
        bus.mint_access_point("ap_2Elab", key="U", issued=0.0, expires=0.0)
    assert set(SERVICES) == set(bus.mint_access_point("ap_02-lab", key="U", issued=0.0, expires=0.0))
