"""
What the events say that Kettle itself does not write: those of DAGMan, of grid and parallel universes, of reuse of data.

They are read from the lines of a log, as HTCondor's reader reads them, and become attributes; an event in XML or JSON
has these attributes already.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Final

from kettle.userlog.event_to_ad import TYPES
from kettle_wire.ads.types import Ad

NODE: Final = "DAG Node: "
"""Before the name of a node, in the notes of events."""
_BYTES: Final = re.compile(r"\s*(\d{1,19})  -  Run Bytes (Sent|Received) By .*")
_RETURNED: Final = re.compile(r"\s*\(1\) Normal termination \(return value (-?\d{1,19})\)")
_SIGNALLED: Final = re.compile(r"\s*\(0\) Abnormal termination \(signal (-?\d{1,19})\)")
_EXECUTABLE: Final = re.compile(r"\((\d{1,9})\) .*")
_REMOTE: Final = re.compile(r"(\S+) from (?:(.+?) on )?(.+?):?")
_CODES: Final = re.compile(r"\s*Code (-?\d{1,9}) Subcode (-?\d{1,9})")
_CHANGED: Final = re.compile(r"Changing job attribute (\S+) from (.*?) to (.*)")
_SET: Final = re.compile(r"Setting job attribute (\S+) to (.*)")


def foreign_attributes(kind: int, lines: Sequence[str]) -> Ad:
    """
    What an event of a kind that Kettle does not write says: `lines` are the rest of its first line, and its body.

    Raises ValueError where it lacks what such an event must have.
    """
    head: Ad = {"MyType": TYPES.get(kind, "FutureEvent")}
    reader = _READERS.get(kind)
    if reader is None:
        return head | {"EventHead": lines[0]}
    try:
        return head | reader(lines)
    except (IndexError, KeyError) as error:
        raise ValueError("it lacks lines that it must have") from error


def _executable_error(lines: Sequence[str]) -> Ad:
    found = _EXECUTABLE.fullmatch(lines[0])
    if found is None:
        raise ValueError("it does not say which error it was")
    return {"ExecuteErrorType": int(found[1])}


def _shadow_exception(lines: Sequence[str]) -> Ad:
    own: Ad = {"SentBytes": 0.0, "ReceivedBytes": 0.0}
    message = ""
    for line in lines[1:]:
        if found := _BYTES.fullmatch(line):
            own[f"{found[2]}Bytes"] = float(found[1])
        else:
            message = message or line.strip()
    return {"Message": message, **own}


def _post_script(lines: Sequence[str]) -> Ad:
    own: Ad = {"TerminatedNormally": False}
    for line in lines[1:]:
        if found := _RETURNED.fullmatch(line):
            own |= {"TerminatedNormally": True, "ReturnValue": int(found[1])}
        elif found := _SIGNALLED.fullmatch(line):
            own["TerminatedBySignal"] = int(found[1])
        elif line.strip().startswith(NODE):
            own["DAGNodeName"] = line.strip().removeprefix(NODE)
    return own


def _remote_error(lines: Sequence[str]) -> Ad:
    found = _REMOTE.fullmatch(lines[0])
    if found is None:
        raise ValueError("it does not say from which daemon it is")
    own: Ad = {"Daemon": found[2]} if found[2] else {}
    own["ExecuteHost"] = found[3]
    message: list[str] = []
    for line in lines[1:]:
        if codes := _CODES.fullmatch(line):
            if int(codes[1]):
                own |= {"HoldReasonCode": int(codes[1]), "HoldReasonSubCode": int(codes[2])}
        else:
            message.append(line.removeprefix("\t"))
    own["ErrorMsg"] = "\n".join(message)
    return own | {"CriticalError": 0} if found[1] == "Warning" else own


def _attribute_update(lines: Sequence[str]) -> Ad:
    if found := _CHANGED.fullmatch(lines[0]):
        return {"Attribute": found[1], "Value": found[3]}
    if found := _SET.fullmatch(lines[0]):
        return {"Attribute": found[1], "Value": found[2]}
    raise ValueError("it does not say which attribute was changed")


def _skipped_by_pre_script(lines: Sequence[str]) -> Ad:
    return {"SkipEventLogNotes": lines[1].strip()} if len(lines) > 1 else {}


def _dataflow_skipped(lines: Sequence[str]) -> Ad:
    return {"Reason": lines[1].strip()} if len(lines) > 1 else {}


def _labelled(**names: tuple[str, type[str | int]]) -> Callable[[Sequence[str]], Ad]:
    """A reader of `Label: value` lines, all of which have to be there: by attribute, label and type."""

    def read(lines: Sequence[str]) -> Ad:
        said = dict(line.strip().split(": ", 1) for line in lines if ": " in line)
        return {name: kind(said[label]) for name, (label, kind) in names.items()}

    return read


_READERS: Final[Mapping[int, Callable[[Sequence[str]], Ad]]] = {
    2: _executable_error,
    7: _shadow_exception,
    16: _post_script,
    21: _remote_error,
    25: _labelled(GridResource=("GridResource", str)),
    26: _labelled(GridResource=("GridResource", str)),
    27: _labelled(GridResource=("GridResource", str), GridJobId=("GridJobId", str)),
    29: lambda _: {},
    30: lambda _: {},
    33: _attribute_update,
    34: _skipped_by_pre_script,
    41: _labelled(
        ReservedSpace=("Bytes reserved", int),
        ExpirationTime=("Reservation Expiration", int),
        UUID=("Reservation UUID", str),
        Tag=("Tag", str),
    ),
    42: _labelled(UUID=("Reservation UUID", str)),
    43: _labelled(
        Size=("Bytes", int),
        Checksum=("Checksum Value", str),
        ChecksumType=("Checksum Type", str),
        UUID=("UUID", str),
    ),
    44: _labelled(Checksum=("Checksum Value", str), ChecksumType=("Checksum Type", str), Tag=("Tag", str)),
    45: _labelled(
        Size=("Bytes", int),
        Checksum=("Checksum Value", str),
        ChecksumType=("Checksum Type", str),
        Tag=("Tag", str),
    ),
    46: _dataflow_skipped,
}
