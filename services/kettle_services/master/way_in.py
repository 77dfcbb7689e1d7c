"""What this host's programs have to know of an iam of the pool, to come to the bus with a token."""

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from kettle.auth.idtokens.places import token_places
from kettle.client.connections.condor_config import CondorConfig
from kettle.runtime import Settings, SettingsError
from kettle_services.master import iam_port

if TYPE_CHECKING:
    from kettle.client.connections.pool_file import PoolFile


class _Iam(Settings, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What matters here of an iam's settings."""

    url: str = ""
    http_host: str = "127.0.0.1"
    http_port: int = 0
    certificate: str = ""
    issuers: dict[str, tuple[str, ...]] = {}


def with_way_in(pool: "PoolFile", home: Path, sentinel: Path, environ: Mapping[str, str]) -> "PoolFile":
    """
    The pool with the address of its iam, and what is shown together with a token; what is wrong with an iam's settings it
    says itself.
    """
    try:
        given = {name: each.value for name, each in _Iam.read("iam", environ=environ).given.items()}
        said = msgspec.convert(
            {name: value for name, value in given.items() if name in _Iam.__struct_fields__},
            _Iam,
            strict=False,
        )
    except (SettingsError, msgspec.ValidationError):
        return pool
    port = said.http_port or iam_port.port(home)
    scheme = "https" if said.certificate else "http"
    url = said.url.rstrip("/") or f"{scheme}://{said.http_host}:{port}"
    return msgspec.structs.replace(
        pool,
        iam_url=url,
        sentinel=str(sentinel),
        issuers=(url, *said.issuers),
        trust_domain=token_places(CondorConfig(environ).get).trust_domain,
    )
