"""
A real NATS server in operator mode believes what iam mints, and gives it no more than the account's template.
"""

import asyncio
import base64
import hashlib
import os
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any, cast

import msgspec
import nats
import nkeys  # type: ignore[import-untyped]  # pyright: ignore[reportMissingTypeStubs]
import pytest_asyncio

from kettle.embedded.binaries import nats_server
from kettle.embedded.nkeys import new_seed, public_key
from kettle.embedded.ports import free_ports, listens
from kettle_services.iam.bus_credentials import ScopedSigningKey

LIBRARY = cast("Any", nkeys)
UNLIMITED = {"subs": -1, "data": -1, "payload": -1}


class Signer:
    """A key of an operator or of an account."""

    def __init__(self, prefix: int) -> None:
        self.seed: bytes = LIBRARY.encode_seed(os.urandom(32), prefix)
        self.pair = LIBRARY.from_seed(bytearray(self.seed))
        self.public = str(self.pair.public_key, "ascii")

    def says(self, subject: str, nats_claims: dict[str, Any]) -> str:
        claims: dict[str, Any] = {
            "iat": 1,
            "iss": self.public,
            "sub": subject,
            "name": "test",
            "nats": nats_claims,
        }
        digest = hashlib.sha256(msgspec.json.encode(claims)).digest()
        claims["jti"] = base64.b32encode(digest).rstrip(b"=").decode()
        head = {"typ": "JWT", "alg": "ed25519-nkey"}
        signed = ".".join(
            base64.urlsafe_b64encode(msgspec.json.encode(part)).rstrip(b"=").decode()
            for part in (head, claims)
        )
        return f"{signed}.{base64.urlsafe_b64encode(self.pair.sign(signed.encode())).rstrip(b'=').decode()}"


class Bus(msgspec.Struct):
    """A server, and what signs for its account."""

    url: str
    account: str
    signing_key: Path


@pytest_asyncio.fixture
async def bus(tmp_path: Path) -> AsyncIterator[Bus]:
    operator, account = Signer(LIBRARY.PREFIX_BYTE_OPERATOR), Signer(LIBRARY.PREFIX_BYTE_ACCOUNT)
    workers = Signer(LIBRARY.PREFIX_BYTE_ACCOUNT)
    template = {
        "pub": {"allow": ["work.{{name()}}.>"]},
        "sub": {"allow": ["cmd.{{name()}}.>"]},
        **UNLIMITED,
    }
    scope = {"kind": "user_scope", "key": workers.public, "role": "worker", "template": template}
    limits = {**UNLIMITED, "imports": -1, "exports": -1, "wildcards": True, "conn": -1, "leaf": -1}
    of_account = {"type": "account", "version": 2, "limits": limits, "signing_keys": [scope]}
    said = operator.says(account.public, of_account)
    [port] = free_ports(1)
    config = tmp_path / "nats.conf"
    config.write_text(
        f"listen: 127.0.0.1:{port}\n"
        f"operator: {operator.says(operator.public, {'type': 'operator', 'version': 2})}\n"
        f"resolver: MEMORY\nresolver_preload: {{ {account.public}: {said} }}\n"
    )
    (tmp_path / "workers.nk").write_bytes(workers.seed)
    server = await asyncio.create_subprocess_exec(
        str(nats_server()), "-c", str(config), stderr=asyncio.subprocess.DEVNULL
    )
    try:
        async with asyncio.timeout(20):
            while not await asyncio.to_thread(listens, port):
                await asyncio.sleep(0.02)
        yield Bus(f"nats://127.0.0.1:{port}", account.public, tmp_path / "workers.nk")
    finally:
        server.terminate()
        await server.wait()


async def test_a_machine_publishes_below_its_own_name_only(bus: Bus, tmp_path: Path) -> None:
    """The server takes the name from what iam has minted; what another machine may publish is refused."""
    signer = ScopedSigningKey(bus.account, bus.signing_key)
    seed = new_seed()
    jwt = signer.mint_worker("n1", joins="worker", key=public_key(seed), owner="ada", issued=1.0, expires=0.0)
    creds = tmp_path / "n1.creds"
    creds.write_text(
        f"-----BEGIN NATS USER JWT-----\n{jwt}\n------END NATS USER JWT------\n\n"
        f"-----BEGIN USER NKEY SEED-----\n{seed}\n------END USER NKEY SEED------\n"
    )
    refused: asyncio.Queue[str] = asyncio.Queue()

    async def complain(error: Exception) -> None:
        refused.put_nowait(str(error))

    client = await nats.connect(bus.url, user_credentials=str(creds), error_cb=complain)  # pyright: ignore[reportUnknownMemberType]
    try:
        await client.publish("work.n1.report", b"mine")
        await client.flush()
        assert refused.empty()
        await client.publish("work.n2.report", b"another's")
        async with asyncio.timeout(10):
            assert "work.n2.report" in await refused.get()
    finally:
        await client.close()
