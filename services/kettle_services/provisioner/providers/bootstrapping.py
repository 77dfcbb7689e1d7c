"""
What a new machine runs: a script of the shell that starts the worker's program and tells it its bootstrap.
"""

import math
import shlex
from collections.abc import Sequence
from typing import Final

import msgspec

from kettle_wire.bootstrap import Bootstrap

_END: Final = "END-OF-BOOTSTRAP"


_TEMPORARY: Final = "${TMPDIR:-/tmp}"


def worker_script(
    bootstrap: Bootstrap, program: str, before: Sequence[str] = (), *, place: str = _TEMPORARY
) -> str:
    """
    A script that passes SIGTERM on to the worker's program, and removes the directory that it makes below `place` at the end.

    The bootstrap has a token that admits one machine once.  The program reads it from its standard input: it is in no command line
    and no environment, which others on the machine may read.
    """
    return "\n".join((
        "#!/bin/sh",
        "umask 077",
        *before,
        *_begun(bootstrap, program, place, background=True),
        "worker=$!",
        """trap 'kill -TERM "$worker" 2>/dev/null' TERM""",
        'while kill -0 "$worker" 2>/dev/null; do wait "$worker"; status=$?; done',
        'rm -rf "$directory"',
        'exit "$status"',
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
        *_begun(bootstrap, program, _TEMPORARY, background=False),
        f"{power_off} now",
        "",
    ))  # fmt: skip


def _begun(bootstrap: Bootstrap, program: str, place: str, *, background: bool) -> tuple[str, ...]:
    words = f'{shlex.quote(program)} worker run --bootstrap - --home "$directory/home"'
    return (
        f'directory=$(mktemp -d "{place}/kettle-worker.XXXXXXXX") || exit 1',
        f"{words} <<'{_END}'{' &' if background else ''}",
        msgspec.json.encode(bootstrap).decode(),  # of one line: it cannot be the line that ends it
        _END,
    )
