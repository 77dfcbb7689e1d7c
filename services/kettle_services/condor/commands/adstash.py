"""condor_adstash: ads of jobs that have left the queue, into files for a search engine."""

import os
import re
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import msgspec

from kettle.client.connections.condor_config import CondorConfig
from kettle_services.condor.arguments.grammar import Option, TypedOption, understood, whole_number
from kettle_services.condor.connections.pool_client import client_of
from kettle_services.condor.errors import ToolError, WordsError, do_you_mean
from kettle_services.condor.printing.values import number
from kettle_wire.ads.types import Ad

OPTIONS: Final = {
    "checkpoint_file": Option(takes=1),
    "interface": Option(takes=1),
    "json_dir": Option(takes=1),
    "pool": Option(takes=1, also=("collectors",)),
    "schedd_history": Option(),
    "schedd_history_max_ads": Option(takes=1),
    "se_index_name": Option(takes=1, also=("es_index_name",)),
    "standalone": Option(),
}
HELP: Final = {
    "condor_adstash": """\
usage: condor_adstash [options]

Write the ads of jobs that have left the queue since the last time into one more file, and remember how far that was.  Each
job is written once, whatever happens meanwhile: a file that was not finished is written again.  Run it by a timer.

  --json_dir DIR         where the files go (.)
  --checkpoint_file FILE where it is remembered (DIR/adstash_checkpoint.json)
  --interface {jsonfile|bulk}   an ad a line, or what a search engine takes at _bulk: a line with index and id before each
  --se_index_name NAME   the index (htcondor-000001)
  --schedd_history_max_ads N    at most so many ads of a time (10000)
  --pool P               of which pool
  --standalone, --schedd_history   change nothing here

  curl -H 'Content-Type: application/x-ndjson' --data-binary @history-000001.ndjson http://localhost:9200/_bulk
""",
}
_INTERFACES: Final = {"jsonfile": "jsonl", "bulk": "ndjson"}
_ENGINES: Final = frozenset({"elasticsearch", "opensearch"})
_INDEX: Final = re.compile(r"[a-z0-9][a-z0-9._-]{0,200}")
_OVERLAP_S: Final = 600.0
"""Jobs of several schedds become known out of order, but not by more than this."""


class Checkpoint(msgspec.Struct):
    """How far all was written."""

    files: int = 0
    until: float = 0.0
    """When the last job ended, seconds since 1970; it left the queue then or later."""
    seen: list[str] = []
    """Written jobs by their global ids, as far as the history is asked for them again."""


class _Wanted(msgspec.Struct):
    """What was typed."""

    directory: Path = Path()
    checkpoint: Path | None = None
    interface: str = "jsonfile"
    index: str = "htcondor-000001"
    most: int = 10_000
    pool: str = ""


def run(_name: str, words: list[str]) -> int:
    """Write what is new."""
    wanted = _Wanted()
    for given in understood(words, OPTIONS):
        _take(wanted, given)
    remembered = wanted.checkpoint or wanted.directory / "adstash_checkpoint.json"
    before = _read(remembered)
    since = before.until - _OVERLAP_S if before.files else None
    client = client_of(CondorConfig(os.environ), pool=wanted.pool)
    found = client.run(lambda pool: pool.history(limit=0, since=since))
    new, after = advanced(before, found, most=wanted.most)
    if new:
        path = wanted.directory / f"history-{after.files:06}.{_INTERFACES[wanted.interface]}"
        _write(path, "".join(document(ad, wanted.index if wanted.interface == "bulk" else "") for ad in new))
        _write(remembered, msgspec.json.encode(after).decode())
        sys.stdout.write(f"{path}: {len(new)} ads\n")
    return 0


def _take(wanted: _Wanted, given: TypedOption) -> None:
    value = given.values[0] if given.values else ""
    match given.name:
        case "json_dir":
            wanted.directory = Path(value)
        case "checkpoint_file":
            wanted.checkpoint = Path(value)
        case "interface":
            wanted.interface = _interface(value)
        case "se_index_name":
            if not _INDEX.fullmatch(value):
                raise WordsError(
                    f"'{value}' is no name of an index: write small letters, figures and any of . _ -"
                )
            wanted.index = value
        case "schedd_history_max_ads":
            wanted.most = max(1, whole_number(given))
        case "pool":
            wanted.pool = value
        case "":
            raise WordsError(f"'{value}' stands alone: a directory is named with --json_dir")
        case _:
            pass


def _interface(said: str) -> str:
    if said in _ENGINES:
        raise ToolError(
            f"condor_adstash: --interface {said} is not carried out; write --interface bulk, and send the file"
        )
    if said not in _INTERFACES:
        raise WordsError(f"--interface knows no '{said}'{do_you_mean(said, _INTERFACES)}")
    return said


def advanced(before: Checkpoint, found: Sequence[Ad], *, most: int) -> tuple[list[Ad], Checkpoint]:
    """What of the history is new, the oldest first, and how far it is written with that."""
    known = set(before.seen)
    new = sorted((ad for ad in found if _id(ad) not in known), key=_ended)[:most]
    until = max([before.until, *map(_ended, new)])
    known.update(map(_id, new))
    seen = [_id(ad) for ad in found if _id(ad) in known]
    return new, Checkpoint(files=before.files + bool(new), until=until, seen=seen)


def document(ad: Ad, index: str = "") -> str:
    """A line with an ad; for a search engine one before it, which says where it goes."""
    from kettle.classad import ClassAd, write_json

    text = write_json(ClassAd.from_wire(ad))
    line = " ".join(text.split("\n")) + "\n"
    if not index:
        return line
    return msgspec.json.encode({"index": {"_index": index, "_id": _id(ad)}}).decode() + "\n" + line


def _id(ad: Ad) -> str:
    return str(ad.get("GlobalJobId", ""))


def _ended(ad: Ad) -> float:
    return number(ad, "EnteredCurrentStatus") or number(ad, "CompletionDate")


def _read(path: Path) -> Checkpoint:
    try:
        return msgspec.json.decode(path.read_bytes(), type=Checkpoint)
    except FileNotFoundError:
        return Checkpoint()
    except OSError as error:
        raise ToolError(f"condor_adstash: {path}: {error.strerror}") from error
    except msgspec.MsgspecError as error:
        raise ToolError(
            f"condor_adstash: {path} is no checkpoint ({error}); remove it to begin from the first job"
        ) from error


def _write(path: Path, text: str) -> None:
    """Whole or not at all."""
    stage = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        with stage.open("w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        stage.replace(path)
    except OSError as error:
        stage.unlink(missing_ok=True)
        raise ToolError(f"condor_adstash: {path}: {error.strerror}") from error
