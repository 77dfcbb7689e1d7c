"""The command line that all plugins of ours have in common."""

import os
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import msgspec

from kettle import VERSION
from kettle.classad import unparse
from kettle.transfer.file_lists import shown, without_secrets
from kettle.transfer.plugin import Move
from kettle.transfer.plugin_protocol import ProtocolError, asked
from kettle.transfer.recording import Recording, error_of

SUCCESS, FAILURE, USAGE = 0, 1, 2

Carry = Callable[[str, str], int]
"""Moves a file between a URL and a path; the file's bytes.  Raises OSError or ValueError with a sentence."""


Refresh = Callable[[Move, Recording], tuple[int, str]]
"""
Fetches a file, or takes the one that was fetched before if it is the same; its bytes, and what names its state.
"""
Deliver = Callable[[Move, Recording], int]
"""Sends a file; its bytes."""


def run(
    arguments: Sequence[str],
    methods: Sequence[str],
    fetch: Carry,
    send: Carry,
    *,
    refresh: Refresh | None = None,
    deliver: Deliver | None = None,
    remove: Callable[[str], None] | None = None,
) -> int:
    """
    Be a plugin; returns its exit code.  `refresh` does what `fetch` does, for a plugin that can detect whether a file
    has changed, or come through a cache, `deliver` what `send` does, for one that notes what it tries; `remove` deletes a URL's file (`-delete`), or, for a URL that ends with a slash, an empty directory.
    """
    if list(arguments) == ["-classad"]:
        sys.stdout.write(_capabilities(methods))
        return SUCCESS
    given = [each for each in arguments if each not in {"-upload", "-delete"}]
    options = dict(zip(given[::2], given[1::2], strict=False))
    if len(given) != 4 or options.keys() != {"-infile", "-outfile"}:
        sys.stderr.write(
            "usage: PLUGIN -classad\n       PLUGIN -infile FILE -outfile FILE [-upload|-delete]\n"
        )
        return USAGE
    if "-delete" in arguments and remove is None:
        sys.stderr.write(f"nothing here removes {'://, '.join(methods)}://\n")
        return USAGE

    def plainly(move: Move, _recording: Recording) -> int:
        return send(move.url, move.path)

    work = _work(arguments, fetch, deliver or plainly, refresh, remove)
    try:
        moves = asked(Path(options["-infile"]).read_text(encoding="utf-8"))
    except (OSError, ProtocolError) as error:
        sys.stderr.write(f"{options['-infile']}: {error}\n")
        return USAGE
    with Path(options["-outfile"]).open("r+", encoding="utf-8") as file:
        for move in moves:
            success, ad = _moved(move, *work)
            file.write(ad)
            if not success:
                return FAILURE
    return SUCCESS


def _work(
    arguments: Sequence[str],
    fetch: Carry,
    deliver: Deliver,
    refresh: Refresh | None,
    remove: Callable[[str], None] | None,
) -> tuple[Refresh, str]:
    """What is to be done with each file, and its name in the answer."""
    if "-delete" in arguments and remove is not None:

        def removed(move: Move, _recording: Recording) -> tuple[int, str]:
            remove(move.url)
            return 0, ""

        return removed, "delete"
    if "-upload" in arguments:
        return lambda move, recording: (deliver(move, recording), ""), "upload"
    return refresh or (lambda move, _: (fetch(move.url, move.path), "")), "download"


def _capabilities(methods: Sequence[str]) -> str:
    return (
        "MultipleFileSupport = true\n"
        'PluginType = "FileTransfer"\n'
        f'PluginVersion = "{VERSION}"\n'
        "ProtocolVersion = 2\n"
        f'SupportedMethods = "{",".join(methods)}"\n'
    )


def _moved(move: Move, work: Refresh, kind: str) -> tuple[bool, str]:
    began, size, why, tag = time.time(), 0, "", ""
    timer, recording = time.monotonic(), Recording(move.named, upload=kind == "upload")
    try:
        size, tag = work(move, recording)
    except (OSError, ValueError) as error:
        why = _sentence(error, move.url)
        recording.ended(move.url, error_of(error), why)
    record = recording.record(size, time.monotonic() - timer, moved=not why)
    ad: dict[str, str | int | bool] = {
        "TransferUrl": move.url,
        "TransferFileName": move.path,
        "TransferProtocol": move.method,
        "TransferType": kind,
        "TransferSuccess": not why,
        "TransferFileBytes": size,
        "TransferTotalBytes": size,
        "TransferStartTime": int(began),
        "TransferEndTime": int(time.time()),
        **({"TransferError": why} if why else {}),
        **({"KettleTag": tag} if tag else {}),
        **({"TransferHostName": record.server} if record.server else {}),
        "TransferTries": len(record.tries) + (not why),
        "KettleRecord": msgspec.json.encode(record).decode(),
    }
    inside = "; ".join(f"{name} = {unparse(value)}" for name, value in ad.items())
    return not why, f"[ {inside} ]\n"


def _sentence(error: Exception, url: str) -> str:
    text = str(error) or type(error).__name__
    if isinstance(error, OSError) and error.errno and error.strerror:
        text = error.strerror + (f" ({os.fspath(error.filename)})" if error.filename else "")
    return without_secrets(text.replace(url, shown(url)))
