"""When the file of a stored credential goes."""

import asyncio
from pathlib import Path
from typing import cast

from kettle.testing.patience import PATIENCE_S
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
