"""
The records of files, from what a plugin has answered: ours say all, others say what HTCondor has words for.
"""

from collections.abc import Mapping, Sequence

import msgspec

from kettle.transfer.file_lists import shown, without_secrets
from kettle.transfer.hold_codes import Ran
from kettle.transfer.plugin import Move, Plugin
from kettle.transfer.plugin_protocol import Result
from kettle.transfer.recording import server_of
from kettle_wire.moved_files import (
    LONGEST,
    TRANSFER,
    FailedTry,
    FileRecord,
)


def recorded(
    plugin: Plugin, moves: Sequence[Move], ran: Ran, *, upload: bool, failed: bool
) -> list[FileRecord]:
    """
    What became of each file that the plugin speaks of; `failed`: not all were moved, which at least one record says.
    """
    by_url = {move.url: move for move in moves}
    by_path = {move.path: move for move in moves}
    records = [
        _ours(result) or _said(result, by_url, by_path, upload=upload) if plugin.ours
        else _said(result, by_url, by_path, upload=upload)
        for result in ran.answer or ()
    ]  # fmt: skip
    if failed and not any(each.error for each in records):
        why = without_secrets(ran.said)[:LONGEST]
        tries = [FailedTry(server=server_of(moves[0].named), source="origin", error=TRANSFER, why=why)]
        records.append(
            FileRecord(url=shown(moves[0].named)[:LONGEST], upload=upload, tries=tries, error=TRANSFER)
        )
    return records


def _ours(result: Result) -> FileRecord | None:
    try:
        return msgspec.json.decode(result.record, type=FileRecord) if result.record else None
    except msgspec.MsgspecError:
        return None


def _said(
    result: Result, by_url: Mapping[str, Move], by_path: Mapping[str, Move], *, upload: bool
) -> FileRecord:
    move = by_url.get(result.url) or by_path.get(result.path)
    url = move.named if move is not None else result.url
    why = without_secrets(result.error)[:LONGEST]
    tries = [] if result.success else [FailedTry(server=server_of(url), error=TRANSFER, why=why)]
    return FileRecord(
        url=shown(url)[:LONGEST],
        upload=upload,
        source=("cache" if result.hit is not None else "origin") if result.success else "",
        server=(result.server or server_of(url))[:LONGEST] if result.success else "",
        hit=result.hit if result.success else None,
        bytes=max(result.total, 0),
        seconds=result.seconds,
        tries=tries,
        error="" if result.success else TRANSFER,
    )
