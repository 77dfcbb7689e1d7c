"""Reports as they go into messages: as many as fit, and what to say when not even one fits."""

from collections.abc import Sequence
from typing import Final

import msgspec

from kettle_wire.attempts import AttemptResult, Ending, ExitRecord
from kettle_wire.codes import HoldCode
from kettle_wire.worker_reports import Checkpointed, FinalReport, Report

_TOO_LARGE: Final = "the report of this attempt has"
_REASON_CHARS: Final = 1000
_encode: Final = msgspec.msgpack.Encoder().encode


class _Batch(msgspec.Struct, frozen=True):
    """`Reports`, with each report encoded already."""

    startd: str
    reports: list[msgspec.Raw]


def cut(box: Sequence[Report], limit: int) -> list[msgspec.Raw]:
    """As many from the front as have together at most `limit` bytes, encoded; at least one."""
    batch: list[msgspec.Raw] = []
    size = 0
    for report in box:
        raw = msgspec.Raw(_encode(report))
        size += len(raw)
        if size > limit and batch:
            break
        batch.append(raw)
    return batch


def encoded(startd: str, batch: list[msgspec.Raw]) -> bytes:
    """The message."""
    return _encode(_Batch(startd, batch))


def shortened(report: Report, size: int) -> Report | None:
    """The report without what makes it large; None if that is not possible, or was done before."""
    body = report.body
    reason = f"{_TOO_LARGE} {size} bytes, more than one message holds"
    match body:
        case Checkpointed(outputs=[_, *_] as outputs):
            why = f"{reason}: the checkpoint has {len(outputs)} files"
            ending = Ending(code=HoldCode.FailedToCheckpoint, reason=why)
            body = msgspec.structs.replace(body, outputs=[], ending=ending)
            return msgspec.structs.replace(report, body=body)
        case FinalReport(steps=[_, *_]):  # they were reported before, as they ended
            return msgspec.structs.replace(report, body=msgspec.structs.replace(body, steps=[]))
        case FinalReport(result=AttemptResult(exit=ExitRecord()), outputs=outputs):
            reason = f"{reason}: the job left {len(outputs)} files as its results"
        case FinalReport(outputs=[_, *_]):  # what it saved is lost, and it runs again
            return msgspec.structs.replace(report, body=msgspec.structs.replace(body, outputs=[]))
        case FinalReport(result=AttemptResult(ending=Ending(code=code, reason=why))) if not why.startswith(
            _TOO_LARGE
        ):
            reason = f"{reason}: code {code}, {why[:_REASON_CHARS]}"
        case _:
            return None
    ending = Ending(code=HoldCode.TransferOutputError, reason=reason)
    short = FinalReport(result=AttemptResult(ending=ending, usage=body.result.usage))
    return msgspec.structs.replace(report, body=short)
