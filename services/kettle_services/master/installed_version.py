"""Which version is installed, whatever version this process runs."""

import asyncio
import hashlib
import importlib
import sys
from importlib.metadata import PackageNotFoundError, distribution

from kettle_services.master.domain.new_binary import Installed

_TRIAL_S = 60.0


def installed() -> Installed | None:
    """What the installer's record says, which names every file with its sum; None while it is not whole."""
    importlib.invalidate_caches()
    try:
        found = distribution("kettle")
        record, metadata = found.read_text("RECORD"), found.read_text("METADATA")
        version = found.version
    except (PackageNotFoundError, OSError, KeyError, TypeError):
        return None
    if not record or not metadata or not version:
        return None
    return Installed(version, hashlib.sha256(f"{metadata}\0{record}".encode()).hexdigest()[:16])


async def trouble() -> str:
    """Why a master of the installed version would not even load; empty: it would."""
    trial = await asyncio.create_subprocess_exec(
        sys.executable,
        "-P",
        "-c",
        "import kettle_services.master.lifecycle, kettle_services.cli.__main__",
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.DEVNULL,
        stderr=asyncio.subprocess.PIPE,
    )
    try:
        async with asyncio.timeout(_TRIAL_S):
            _, said = await trial.communicate()
    except TimeoutError:
        return f"it does not load within {_TRIAL_S:g} s"
    finally:
        if trial.returncode is None:
            trial.kill()
            await trial.wait()
    lines = said.decode(errors="replace").strip().splitlines()
    return "" if trial.returncode == 0 else (lines[-1] if lines else f"status {trial.returncode}")
