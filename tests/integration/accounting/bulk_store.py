"""
A small store that speaks the bulk protocol of Elasticsearch and OpenSearch behind a port, and says no when it is told to.

Faithful in what a client can see: lines of JSON with a newline at the end and nothing else are taken; each item has a status
of its own; the first document that has a field fixes its type; `_version` counts how often an id was indexed.
"""

import datetime as dt
import ipaddress
import json
import ssl
from collections import Counter
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from aiohttp import web
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec


class BulkServer:
    def __init__(self) -> None:
        self.url = ""
        self.documents: dict[tuple[str, str], dict[str, Any]] = {}
        self.versions: Counter[tuple[str, str]] = Counter()
        self.requests = 0
        self.authorization = ""
        """What it wants to be shown; empty: nothing."""
        self.whole: list[web.Response] = []
        """Answers to the next requests, none of which is looked at."""
        self.busy: Counter[str] = Counter()
        """By id, how often an item is refused because there is too much to do."""
        self.most_bytes = 1 << 30
        self._types: dict[tuple[str, str], str] = {}

    def fix(self, index: str, field: str, kind: type) -> None:
        """From now on a field has this type."""
        self._types[index, field] = kind.__name__

    async def bulk(self, request: web.Request) -> web.Response:
        self.requests += 1
        if self.whole:
            return self.whole.pop(0)
        if self.authorization and request.headers.get("Authorization") != self.authorization:
            return web.json_response({"error": {"type": "security_exception"}}, status=401)
        if request.content_type != "application/x-ndjson":
            return web.json_response({"error": "Content-Type header is not supported"}, status=406)
        data = await request.read()
        if len(data) > self.most_bytes:
            return web.Response(status=413)
        *lines, rest = data.split(b"\n")
        if rest or len(lines) % 2:
            reason = "The bulk request must be terminated by a newline [\\n]"
            return web.json_response(
                {"error": {"type": "illegal_argument_exception", "reason": reason}}, status=400
            )
        pairs = zip(lines[::2], lines[1::2], strict=True)
        items = [self._index(json.loads(action)["index"], json.loads(document)) for action, document in pairs]
        errors = any(item["index"]["status"] >= 300 for item in items)
        return web.json_response({"took": 1, "errors": errors, "items": items})

    def _index(self, action: dict[str, str], document: dict[str, Any]) -> dict[str, Any]:
        index, name = action["_index"], action["_id"]
        said: dict[str, Any] = {"_index": index, "_id": name}
        if self.busy[name]:
            self.busy[name] -= 1
            error = {
                "type": "es_rejected_execution_exception",
                "reason": "rejected execution: queue capacity",
            }
            return {"index": said | {"status": 429, "error": error}}
        for field, value in document.items():
            kind = type(value).__name__
            if self._types.setdefault((index, field), kind) != kind:
                error = {"type": "mapper_parsing_exception", "reason": f"failed to parse field [{field}]"}
                return {"index": said | {"status": 400, "error": error}}
        self.versions[index, name] += 1
        self.documents[index, name] = document
        version = self.versions[index, name]
        return {"index": said | {"_version": version, "status": 201 if version == 1 else 200}}


@asynccontextmanager
async def bulk_server(tls: ssl.SSLContext | None = None) -> AsyncGenerator[BulkServer]:
    server = BulkServer()
    app = web.Application(client_max_size=1 << 30)
    app.router.add_post("/_bulk", server.bulk)
    runner = web.AppRunner(app)
    await runner.setup()
    try:
        site = web.TCPSite(runner, "127.0.0.1", 0, ssl_context=tls)
        await site.start()
        port = runner.addresses[0][1]
        server.url = f"{'https' if tls else 'http'}://127.0.0.1:{port}"
        yield server
    finally:
        await runner.cleanup()


def certificate(directory: Path) -> tuple[ssl.SSLContext, Path]:
    """A server's side of TLS for 127.0.0.1, and the file of who vouches for it."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "store")])
    now = dt.datetime.now(dt.UTC)
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - dt.timedelta(days=1))
        .not_valid_after(now + dt.timedelta(days=1))
        .add_extension(
            x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]), critical=False
        )
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .sign(key, hashes.SHA256())
    )
    ca, secret = directory / "ca.pem", directory / "key.pem"
    ca.write_bytes(made.public_bytes(serialization.Encoding.PEM))
    secret.write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        )
    )
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(ca, secret)
    return context, ca
