"""Which parts of a facility can be shown here, and what is missing for the others."""

import os
import shutil
from importlib.util import find_spec
from pathlib import Path
from typing import Final

PROXY: Final = "configurable-http-proxy"
"""The program that JupyterHub starts before itself."""
_OF_HUB: Final = ("jupyterhub", "jupyterlab", "oauthenticator")
_OF_FILES: Final = {"xrootd": "xrootd-server", "xrdcp": "xrootd-client"}
"""Programs, and the Debian packages that have them."""
_PLUGIN: Final = "libXrdClProxyPlugin"
_LIBRARIES: Final = ("lib", "lib64", "lib/*-linux-gnu")


def missing_for_hub() -> str:
    """Why there can be no JupyterHub here; empty: there can."""
    modules = [name for name in _OF_HUB if find_spec(name) is None]
    if modules:
        return f"no JupyterHub: {', '.join(modules)} not installed here (pip install 'kettle[facility]')"
    if shutil.which(PROXY) is None:
        return f"no JupyterHub: there is no {PROXY} on the PATH (npm install --global {PROXY})"
    return ""


def missing_for_files() -> str:
    """Why there can be no files behind a cache of XRootD here; empty: there can."""
    for program, package in _OF_FILES.items():
        if shutil.which(program) is None:
            return f"no XRootD: there is no {program} on the PATH (Debian: apt install {package})"
    if not any(file for place in _LIBRARIES for file in Path("/usr").glob(f"{place}/{_PLUGIN}*.so")):
        return f"no XRootD: {_PLUGIN} is missing (Debian: apt install xrootd-client-plugins)"
    return ""


def missing_for_network() -> str:
    """Why no network can be made here that nothing reaches; empty: perhaps it can."""
    return "" if os.geteuid() == 0 else "no machine behind NAT: only root makes networks"
