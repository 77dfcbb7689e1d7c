"""When the file of a stored credential goes, and how long a stored token is good."""

import asyncio
import base64
from pathlib import Path
from typing import cast

import msgspec
import pytest

from kettle.testing.patience import PATIENCE_S
from kettle_services.iam.domain import credentials
from kettle_services.iam.domain.refusals import Denied
from kettle_services.iam.domain.state import Register
from kettle_services.iam.record import Record
from kettle_services.iam.sealed_files import SealedFiles
from kettle_services.iam.stored_credentials import StoredCredentials
from kettle_wire.commands.job_credentials import RemoveCredential
from kettle_wire.events.iam import CredentialStored
from kettle_wire.identity import user


class Folded:
    """What is recorded, folded."""

    def __init__(self) -> None:
        self.register = Register()


async def test_a_file_goes_only_after_its_removal_is_recorded(tmp_path: Path) -> None:
    """Who is told that it could not be recorded still has it."""
    folded, files = Folded(), SealedFiles(tmp_path, now=0.0)
    stored = CredentialStored(owner="ada", service="site", handle="", kind="token", by="ada", at=0.0)
    folded.register.apply("credential/ada/site/", stored)
    files.put("ada", "site.", "secret")
    office = StoredCredentials(cast("Record", folded), files, {}, lifetime=60.0)
    decision = await office.remove(RemoveCredential(id="1", service="site"), user("ada"))
    assert "secret" == files.get("ada", "site.")
    assert decision.effect is not None
    for stream, event in decision.changes:
        folded.register.apply(stream, event)  # type: ignore[arg-type]
    decision.effect()
    async with asyncio.timeout(PATIENCE_S):
        while list(tmp_path.glob("*/*.sealed")):
            await asyncio.sleep(0.01)


def token_until(ends: object) -> str:
    parts = ({"alg": "ES256"}, {"exp": ends})
    words = [base64.urlsafe_b64encode(msgspec.json.encode(each)).rstrip(b"=").decode() for each in parts]
    return ".".join([*words, "c2ln"])


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("opaque", 1200.0),
        (token_until(1020), 20.0),
        (token_until(10**9), 1200.0),
        (token_until("soon"), 1200.0),
    ],
)
def test_a_job_asks_again_before_a_stored_token_ends(text: str, expected: float) -> None:
    """A token that says its end is asked for again before it, and no later than others."""
    assert expected == credentials.life_left(text, 1200.0, now=1000.0)


def test_a_stored_token_that_is_over_is_given_to_nobody() -> None:
    """The sentence says what to do, and has nothing of the token."""
    over = token_until(999)
    with pytest.raises(Denied, match="store another one") as refused:
        credentials.life_left(over, 1200.0, now=1000.0)
    assert over not in str(refused.value)
