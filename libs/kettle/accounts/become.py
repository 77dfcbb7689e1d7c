"""
`python -m kettle.accounts.become UID GID GROUPS MODULE ARGUMENT...`: run the `main` of a module of ours as another account.

The module is loaded first, since the account may not be able to read where it lies; then the rights of root are given up
for good, and nothing that is executed later can bring others.
"""

import ctypes
import importlib
import os
import sys
from collections.abc import Callable, Sequence
from typing import Final

from kettle.accounts.rights import Rights

_NO_NEW_PRIVILEGES: Final = 38
_KEPT: Final = frozenset({
    "PATH", "PYTHONPATH", "LANG", "LC_ALL", "TZ", "SSL_CERT_FILE", "SSL_CERT_DIR",
    "http_proxy", "https_proxy", "no_proxy", "HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY",
})  # fmt: skip
"""The variables of ours that another account's program gets: none names a secret."""


def command(rights: Rights, module: str, arguments: Sequence[str]) -> list[str]:
    """What to execute, with `environment()`, to have it run."""
    groups = ",".join(map(str, rights.groups))
    told = [str(rights.uid), str(rights.gid), groups, module, *arguments]
    return [sys.executable, "-P", "-m", "kettle.accounts.become", *told]


def environment() -> dict[str, str]:
    """The variables of such a program."""
    return {name: value for name, value in os.environ.items() if name in _KEPT}


def main(arguments: Sequence[str]) -> int:
    """Become the account, and return what the module's `main` returns."""
    uid, gid, groups, module, *rest = arguments
    run: Callable[[Sequence[str]], int] = importlib.import_module(module).main
    os.umask(0o077)
    os.setgroups([int(group) for group in groups.split(",") if group])
    os.setresgid(int(gid), int(gid), int(gid))
    os.setresuid(int(uid), int(uid), int(uid))
    if ctypes.CDLL(None, use_errno=True).prctl(_NO_NEW_PRIVILEGES, 1, 0, 0, 0):
        raise OSError(ctypes.get_errno(), "no_new_privs")
    os.chdir("/")
    return run(rest)


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
