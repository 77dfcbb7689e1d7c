"""Which pool is meant, and as whom one comes to it."""

from collections.abc import Callable, Mapping
from pathlib import Path

import msgspec

from kettle.client.connections.pool_file import (
    DEFAULT_POOL,
    FILE,
    USER,
    PoolFile,
    home_directory,
    login_name,
    system_directory,
)

Knob = Callable[[str], str | None]
"""What a knob of HTCondor says."""


def locate(
    environ: Mapping[str, str],
    *,
    nats_url: str | None = None,
    credentials: str | Path | None = None,
    home: Path | None = None,
    knob: Knob | None = None,
) -> PoolFile:
    """
    The pool to speak to: the one that is named here, else by `KETTLE_NATS_URL`, else by its address `KETTLE_POOL_URL`, else by
    the pool's directory, else the one of root on this machine.

    Raises:
        PoolNotFoundError: there is none.
    """
    url = nats_url or (environ.get("KETTLE_NATS_URL") if home is None else None)
    address = url or (environ.get("KETTLE_POOL_URL") if home is None else None) or ""
    if address.startswith(("https://", "http://")):
        from kettle.client.connections.way_in import pool_at  # only where a pool is known by nothing else

        return with_credential(
            pool_at(address, home_directory(environ), environ.get("KETTLE_NATS_CA", "")),
            environ,
            credentials,
            knob=knob,
        )
    if not url:
        named = home is not None
        if home is None and not environ.get("KETTLE_HOME"):
            home = next(
                (each for each in (home_directory(environ), system_directory()) if (each / FILE).exists()),
                None,
            )
        found = PoolFile.load(home or home_directory(environ))
        own: Mapping[str, str] = {} if named else environ
        return with_credential(found, own, credentials, home=home if named else None, knob=knob)
    return PoolFile(
        pool=environ.get("KETTLE_POOL") or DEFAULT_POOL,
        nats_url=url,
        credentials=str(credentials or environ.get("KETTLE_NATS_CREDENTIALS") or ""),
        ca=environ.get("KETTLE_NATS_CA") or "",
        user=(environ.get(USER) if url.startswith("job:") else "") or login_name(),
    )


def with_credential(
    pool: PoolFile,
    environ: Mapping[str, str],
    credentials: str | Path | None = None,
    *,
    home: Path | None = None,
    knob: Knob | None = None,
) -> PoolFile:
    """
    The pool of a file, with the key that is named here in place of the file's, or a token where the pool takes any.

    `home` is the directory of the person's logins; `knob` says what HTCondor's knobs are, without it its variables count.
    """
    if key := credentials or environ.get("KETTLE_NATS_CREDENTIALS"):
        return msgspec.structs.replace(pool, credentials=str(key), token="")
    if not pool.sentinel or pool.token:
        return pool
    from kettle.client.connections.credentials import with_token  # only where tokens are taken

    def variable(name: str) -> str | None:
        return environ.get(f"_condor_{name}")

    return with_token(pool, environ, home or home_directory(environ), knob or variable)
