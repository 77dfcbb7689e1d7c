"""
The port of a service at which it is looked after: `/healthz`, `/readyz` and `/metrics`.

Prometheus finds it by a file that the service writes (`file_sd_configs`). The file of a service that was killed stays, so that
its absence is seen; the next process of that name writes it again.
"""

import hmac
import os
import ssl
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final
from urllib.parse import quote

import msgspec
from aiohttp import web

from kettle.runtime import health, http_server
from kettle.runtime.exposition import content_type, exposition
from kettle.runtime.measurements import Measurements
from kettle.runtime.process_metrics import measure_process
from kettle.runtime.settings import Settings
from kettle.runtime.settings_problems import SettingsError
from kettle.runtime.telemetry_settings import TelemetrySettings

_READABLE_BY_ALL: Final = 0o644


@asynccontextmanager
async def serving(
    role: str,
    settings: Settings,
    checks: Mapping[str, health.Check],
    measurements: Measurements,
    *,
    encryption: ssl.SSLContext | None = None,
    version: str,
) -> AsyncGenerator[int]:
    """
    Answer while the context lasts; yields the port.

    Raises:
        SettingsError: the port is taken, or the key or the directory for Prometheus cannot be used.
    """
    wanted = settings.telemetry
    name = str(getattr(settings, "name", "")) or role
    application = web.Application()
    health.add_health(application, checks)
    target = {
        "service_name": f"kettle-{role}",
        "service_namespace": f"kettle.{settings.pool}",
        "service_instance_id": f"{os.uname().nodename}:{os.getpid()}",
        "service_version": version,
    }
    add_metrics(application, measurements, target, key=key_of(wanted))
    async with (
        measure_process(measurements),
        http_server.serving(application, wanted.host, settings.health_port, encryption) as port,
    ):
        if not wanted.metrics:
            yield port
            return
        path = wanted.directory(settings.home_path) / f"{role}.{quote(name, safe='')}.json"
        entry = _entry(role, name, settings, port, encrypted=encryption is not None)
        _write(path, entry)
        try:
            yield port
        finally:
            _remove(path, entry)


def add_metrics(
    application: web.Application,
    measurements: Measurements,
    target: Mapping[str, str],
    *,
    key: str = "",
    shown: Callable[[str], bool] = lambda _name: True,
) -> None:
    """Answer `/metrics`, with a `key` only to those who show it; `shown` chooses by the metric's name."""

    async def metrics(request: web.Request) -> web.Response:
        if key and not _shows(request, key):
            return web.Response(
                status=401,
                text="show the key of [telemetry] key as: Authorization: Bearer KEY\n",
                headers={"WWW-Authenticate": "Bearer"},
            )
        kind = content_type(request.headers.get("Accept", ""))
        families = [each for each in await measurements.families() if shown(each.metric.name)]
        text = exposition(families, kind, target=target)
        return web.Response(body=text.encode(), headers={"Content-Type": kind})

    application.router.add_get("/metrics", metrics)


def _shows(request: web.Request, key: str) -> bool:
    scheme, _, shown = request.headers.get("Authorization", "").partition(" ")
    return scheme.lower() == "bearer" and hmac.compare_digest(shown.strip().encode(), key.encode())


def key_of(settings: TelemetrySettings) -> str:
    """What somebody shows who asks for metrics; empty: nothing.  Raises SettingsError."""
    path = settings.key
    if not path:
        return ""
    try:
        key = Path(path).expanduser().read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise SettingsError(f"[telemetry] key: {path} cannot be read: {error}") from error
    if not key:
        raise SettingsError(f"[telemetry] key: {path} is empty: write a key of your own into it")
    return key


def _entry(role: str, name: str, settings: Settings, port: int, *, encrypted: bool) -> bytes:
    """What Prometheus is told; `instance` stays the same at each start, whatever the port is."""
    node = os.uname().nodename
    host = node if settings.telemetry.certificate else settings.telemetry.host
    address = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
    labels = {
        "instance": f"{node}/{name if name != role else role}",
        "pool": settings.pool,
        "service": role,
        "__scheme__": "https" if encrypted else "http",
    }
    return msgspec.json.encode([{"targets": [address], "labels": labels}])


def _write(path: Path, entry: bytes) -> None:
    try:
        path.parent.mkdir(mode=0o755, parents=True, exist_ok=True)
        fresh = path.with_suffix(f".{os.getpid()}.new")
        fresh.write_bytes(entry)
        fresh.chmod(_READABLE_BY_ALL)
        fresh.replace(path)
    except OSError as error:
        raise SettingsError(
            f"[telemetry] targets: {path} cannot be written: {error.strerror}; name a directory that this service may write"
        ) from error


def _remove(path: Path, entry: bytes) -> None:
    """Unless another process of that name has written its own."""
    try:
        if path.read_bytes() == entry:
            path.unlink()
    except FileNotFoundError:
        pass  # somebody has tidied up
