"""What a new machine runs: a script of the shell that starts the worker's program with its bootstrap."""

import math
import shlex
from collections.abc import Sequence

import msgspec

from kettle_services.provisioner.port import Bootstrap

_END = "END-OF-BOOTSTRAP"


def worker_script(bootstrap: Bootstrap, program: str, before: Sequence[str] = ()) -> str:
    """
    A script whose process becomes the worker's program, so that signals reach it.

    The bootstrap has a token that admits one machine once.  It goes into a file of the machine's own account, never into a
    command line or an environment, which others on the machine may read.
    """
    return "\n".join((
        "#!/bin/sh",
        "umask 077",
        *before,
        *_bootstrap_file(bootstrap),
        f'exec {shlex.quote(program)} worker run --bootstrap "$directory/bootstrap.json"',
        "",
    ))  # fmt: skip


def machine_script(bootstrap: Bootstrap, program: str, before: Sequence[str], power_off: str) -> str:
    """
    A script for a whole machine, which is switched off when the worker's program has ended, and at the end of its life even
    if that hangs.  `power_off` is a command that takes `now`, or `+` and minutes, as `shutdown -P` does.
    """
    minutes = math.ceil(bootstrap.life / 60)
    return "\n".join((
        "#!/bin/sh",
        "umask 077",
        f"{power_off} +{minutes}",
        *before,
        *_bootstrap_file(bootstrap),
        f'{shlex.quote(program)} worker run --bootstrap "$directory/bootstrap.json"',
        f"{power_off} now",
        "",
    ))  # fmt: skip


def _bootstrap_file(bootstrap: Bootstrap) -> tuple[str, ...]:
    return (
        'directory=$(mktemp -d "${TMPDIR:-/tmp}/kettle-worker.XXXXXXXX") || exit 1',
        f"cat >\"$directory/bootstrap.json\" <<'{_END}'",
        msgspec.json.encode(bootstrap).decode(),
        _END,
    )
