"""
The command line that all plugins of ours have in common.
"""

import os
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

from kettle.classad import unparse
from kettle.transfer.manifest import shown
from kettle.transfer.plugin import Move
from kettle.transfer.protocol import ProtocolError, asked

VERSION: Final = "0.1.0"
SUCCESS, FAILURE, USAGE = 0, 1, 2

Carry = Callable[[str, str], int]
"""Moves a file between a URL and a path; the file's bytes.  Raises OSError or ValueError with a sentence."""


def run(arguments: Sequence[str], methods: Sequence[str], fetch: Carry, send: Carry) -> int:
    """
    Be a plugin; its exit code.
    """
    if list(arguments) == ["-classad"]:
        sys.stdout.write(_capabilities(methods))
        return SUCCESS
    given = [each for each in arguments if each != "-upload"]
    options = dict(zip(given[::2], given[1::2], strict=False))
    if len(given) != 4 or options.keys() != {"-infile", "-outfile"}:
        sys.stderr.write("usage: PLUGIN -classad\n       PLUGIN -infile FILE -outfile FILE [-upload]\n")
        return USAGE
    upload = "-upload" in arguments
    try:
        moves = asked(Path(options["-infile"]).read_text(encoding="utf-8"))
    except (OSError, ProtocolError) as error:
        sys.stderr.write(f"{options['-infile']}: {error}\n")
        return USAGE
    with Path(options["-outfile"]).open("r+", encoding="utf-8") as file:
        for move in moves:
            success, ad = _moved(move, send if upload else fetch, upload=upload)
            file.write(ad)
            if not success:
                return FAILURE
    return SUCCESS


def _capabilities(methods: Sequence[str]) -> str:
    return (
        "MultipleFileSupport = true\n"
        'PluginType = "FileTransfer"\n'
        f'PluginVersion = "{VERSION}"\n'
        "ProtocolVersion = 2\n"
        f'SupportedMethods = "{",".join(methods)}"\n'
    )


def _moved(move: Move, carry: Carry, *, upload: bool) -> tuple[bool, str]:
    began, size, why = time.time(), 0, ""
    try:
        size = carry(move.url, move.path)
    except (OSError, ValueError) as error:
        why = _sentence(error, move.url)
    ad: dict[str, str | int | bool] = {
        "TransferUrl": move.url,
        "TransferFileName": move.path,
        "TransferProtocol": move.method,
        "TransferType": "upload" if upload else "download",
        "TransferSuccess": not why,
        "TransferFileBytes": size,
        "TransferTotalBytes": size,
        "TransferStartTime": int(began),
        "TransferEndTime": int(time.time()),
        **({"TransferError": why} if why else {}),
    }
    inside = "; ".join(f"{name} = {unparse(value)}" for name, value in ad.items())
    return not why, f"[ {inside} ]\n"


def _sentence(error: Exception, url: str) -> str:
    text = str(error) or type(error).__name__
    if isinstance(error, OSError) and error.errno and error.strerror:
        text = error.strerror + (f" ({os.fspath(error.filename)})" if error.filename else "")
    return text.replace(url, shown(url))
