"""Programs of others that know the REST interface by its OpenAPI document alone."""

import faulthandler
import logging
import os
import re
from pathlib import Path
from typing import Any, Final

import pytest

from kettle.testing.commands.running import execute
from kettle.testing.shared_pool import SharedPool
from kettle.testing.throwaway_pool import ThrowawayPool
from kettle_wire.rest.catalogue import ROUTES

from .client_environments import SCRIPTS, python_of, python_with

pytestmark = [pytest.mark.scenario, pytest.mark.embedded]

SCHEMATHESIS: Final = "schemathesis==4.32.5"
WITHIN_S: Final = 1200.0
LONG: Final = "KETTLE_TEST_LONG"
LONG_S: Final = 4 * 3600.0
ABSENT: Final = "^/(ce/v1/(jobs$|jobs:route|jobs/.*/sandbox|routes)|v2/(audit|bans|credentials|leases|logins|own-join-tokens|own-workers|pools|workers))"
"""
Paths of services that this pool does not have, each of which answers 503 or 404 when it has been waited for; and one that takes a tar file,
which the program cannot make.
"""
CASES: Final = 10_000
_log: Final = logging.getLogger(__name__)
EXAMPLES: Final = 75


@pytest.fixture(scope="module")
def configuration() -> dict[str, Any]:
    return {"settings": {"gateway": {"rest": True, "request_burst": 1e6, "requests_per_second": 1e6}}}


def address(pool: ThrowawayPool) -> str:
    return f"http://127.0.0.1:{(pool.home / 'gateway' / 'port').read_text()}"


async def test_a_generated_client_does_what_people_do(pool: ThrowawayPool, tmp_path: Path) -> None:
    """A client made by openapi-python-client submits jobs, waits for them, reads them and removes them."""
    python = await python_of("rest_generated_client.py", "openapi-python-client", tmp_path)
    made = [str(Path(python).parent / "openapi-python-client"), "generate", "--meta", "none"]
    words = [*made, "--url", f"{address(pool)}/openapi.json", "--output-path", str(tmp_path / "made_client")]
    assert 0 == (generated := await execute(words, tmp_path, dict(os.environ))).status, generated
    script = str(SCRIPTS / "rest_generated_client.py")
    token = str(pool.home / "gateway" / "token")
    said = await execute(
        [python, script, str(tmp_path), address(pool), token], tmp_path, dict(os.environ), within_s=WITHIN_S
    )
    assert "PROVEN" == said.out.splitlines()[-1].partition(":")[0], said
    assert 0 == said.status


async def test_whatever_the_document_allows_is_answered_as_it_says(
    pool: ThrowawayPool, shared_pool: SharedPool, tmp_path: Path
) -> None:
    """Schemathesis finds no answer to a generated request that the document does not describe."""
    shared_pool.spoil()  # its machine is drained, and more
    await checked(pool, tmp_path, examples=5, within_s=WITHIN_S)


@pytest.mark.skipif(
    LONG not in os.environ, reason=f"it takes minutes: ten thousand requests ({LONG}=1 sends them)"
)
async def test_ten_thousand_generated_requests_are_answered_as_the_document_says(
    pool: ThrowawayPool, shared_pool: SharedPool, tmp_path: Path
) -> None:
    """Schemathesis finds none among 10,000 generated requests and more."""
    shared_pool.spoil()
    cases = await checked(pool, tmp_path, examples=EXAMPLES, within_s=LONG_S)
    assert cases >= CASES


async def checked(pool: ThrowawayPool, tmp_path: Path, *, examples: int, within_s: float) -> int:
    """Have schemathesis send requests, so many by chance to each operation; how many it sent in all."""
    python = await python_with([SCHEMATHESIS], "schemathesis", tmp_path)
    token = (pool.home / "gateway" / "token").read_text().strip()
    words = [
        *(str(Path(python).parent / "schemathesis"), "--config-file", str(SCRIPTS / "schemathesis.toml")),
        *("run", f"{address(pool)}/openapi.json", "--header", f"Authorization: Bearer {token}"),
        *(word for route in ROUTES if route.stream for word in ("--exclude-path", route.path)),
        *("--exclude-path-regex", ABSENT),
        *("--max-examples", str(examples), "--seed", "1", "--no-color"),
        *("--suppress-health-check", "all", "--generation-database", "none", "--continue-on-failure"),
    ]
    faulthandler.cancel_dump_traceback_later()  # what ends a test that hangs knows nothing of this one
    said = await execute(words, tmp_path, dict(os.environ), within_s=within_s)
    assert not re.search(r"ST\d+ ", said.out), said.out
    sent = re.search(r"([\d,]+) generated", said.out)
    assert sent is not None, said
    _log.info("%s requests were sent", sent[1])
    return int(sent[1].replace(",", ""))
