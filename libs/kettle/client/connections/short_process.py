"""
A process that asks one thing and ends: what Python does at its start and its end takes longer than the question.

Measured with `kettle q ID`, CPU time of the process: 70 ms, of which the modules that a type checker's helpers load are 9,
the collector of garbage 4, and the orderly end 9.
"""

import gc
import os
import sys
from contextlib import suppress
from typing import Final, NoReturn

_MAY_WAIT: Final = "threading", "logging"
"""Who has loaded one of these may have something to finish when the interpreter ends."""


def defer_loading() -> None:
    """
    Call it before anything imports msgspec.

    What is loaded now stays to the end, so nobody looks whether it is garbage until the interpreter's usual limits are set
    again, see `loaded`; and msgspec takes `get_type_hints` from `typing`, as it does where `typing_extensions` is not installed:
    from Python 3.11 on the one of `typing` knows all that our messages use.
    """
    gc.disable()
    name = "typing_extensions"
    if name in sys.modules or "msgspec" in sys.modules:
        return
    sys.modules[name] = None  # type: ignore[assignment]  # so Python says: there is none
    try:
        import msgspec as _  # noqa: F401  # to be loaded is all
    finally:
        del sys.modules[name]


def resume_collection() -> None:
    """
    Call it when a program may live long, or make much: garbage is looked for again, but not in what is there now.
    """
    gc.freeze()
    gc.enable()


def exit_quickly(status: int) -> NoReturn:
    """
    End the process with this status; what was printed is written first.

    Where there are no threads and no loggers nothing waits for the interpreter to take itself apart, so it does not.
    """
    if any(name in sys.modules for name in _MAY_WAIT):
        sys.exit(status)
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError, ValueError):  # closed, or nobody reads any more
            stream.flush()
    os._exit(status)
