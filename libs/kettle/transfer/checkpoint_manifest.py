"""
Checkpoints at a URL: where their files are, and the manifest that says what they were.

    <destination>/<global job id>/<number, four digits>/<name>        a file of the checkpoint
    <destination>/<global job id>/<number, four digits>/MANIFEST.<number>

The manifest is what `sha256sum` prints for the files, and in its last line the same for all lines before it.  It is
written last: where there is one, there is all that it names.  A copy of it, with the URL, stays with the pool beside the
job; so neither a change of the job's destination nor one of the files there goes unnoticed.
"""

import posixpath
from collections.abc import Iterable, Sequence
from typing import Final
from urllib.parse import unquote

import msgspec

from kettle.transfer.file_lists import is_inside, is_url, scheme_of, shown

DIRECTORY: Final = "_condor_checkpoint"
"""
In the sandbox, and among what the pool keeps of a job: the manifest, and the URL below which the files are.
"""
WHERE: Final = f"{DIRECTORY}/URL"
_MANIFEST: Final = "MANIFEST."
_ESCAPED: Final = (("\\", "\\\\"), ("\n", "\\n"), ("\r", "\\r"))
_RESERVED: Final = {"%": "%25", "?": "%3F", "#": "%23"}
_STAY: Final = frozenset({"s3", "gs"})
"""Nothing here signs an address by which these could be removed."""


class CheckpointError(ValueError):
    """What is known of a checkpoint makes no sense, or is not what its sums say."""


class Entry(msgspec.Struct, frozen=True):
    """A file of a checkpoint; `name` is relative."""

    name: str
    sha256: str


def place(destination: str, global_id: str, number: int) -> str:
    """
    The URL below which a checkpoint's files are; a job's id has a character that ends a URL's path.

    Raises CheckpointError, as `refuse` does.
    """
    where = f"{destination.rstrip('/')}/{global_id.replace('#', '_')}/{number:04}"
    refuse(where)
    return where


def refuse(where: str) -> None:
    """
    What is saved below a URL is removed there one day: one by which something else could be meant is no destination.

    Raises CheckpointError.
    """
    if not is_url(where):
        raise CheckpointError(f"{where} is no place for checkpoints: write a URL, as https://host/directory")
    if scheme_of(where) in _STAY:
        raise CheckpointError(
            f"{shown(where)} is no place for checkpoints: nothing here would remove them there; file, http, https, dav, "
            "davs, root and roots can be used"
        )
    if "?" in where or "#" in where:
        raise CheckpointError(f"{shown(where)}: a place for checkpoints has a path only, without ? and #")
    parts = [unquote(part) for part in where.partition("://")[2].split("/")]
    if any(part in {".", ".."} or "/" in part or "\0" in part for part in parts):
        raise CheckpointError(f"{shown(where)}: the path of a place for checkpoints has no . and .. in it")


def url(place: str, name: str) -> str:
    """The URL of a file below a place; what would end a URL's path is escaped."""
    return f"{place}/{''.join(_RESERVED.get(char, char) for char in name)}"


def manifest_name(number: int) -> str:
    """The name of a checkpoint's manifest."""
    return f"{_MANIFEST}{number:04}"


def number_of(name: str) -> int | None:
    """The number of the checkpoint whose manifest has this name; None if it is no manifest's."""
    digits = posixpath.basename(name).removeprefix(_MANIFEST)
    return int(digits) if digits.isdecimal() and name.endswith(f"{_MANIFEST}{digits}") else None


def line(entry: Entry) -> str:
    """A line as `sha256sum --binary` prints it, names with a line break or a backslash included."""
    name = entry.name
    for plain, escaped in _ESCAPED:
        name = name.replace(plain, escaped)
    return f"{'' if name == entry.name else chr(92)}{entry.sha256} *{name}\n"


def read(text: str) -> tuple[list[Entry], Entry]:
    """
    The files of a manifest, and its own entry, which names it.

    Raises:
        CheckpointError: it is no manifest.
    """
    entries = [_entry(each) for each in text.removesuffix("\n").split("\n")]
    if number_of(entries[-1].name) is None:
        raise CheckpointError("the manifest does not end with its own sum")
    if unsafe := [entry.name for entry in entries if not is_inside(entry.name)]:
        raise CheckpointError(f"the manifest names {unsafe[0]!r}, which is outside of the sandbox")
    return entries[:-1], entries[-1]


def body(text: str) -> str:
    """What the sum in the last line is of: all lines before it."""
    return text[: text.removesuffix("\n").rfind("\n") + 1]


def everything(place: str, entries: Iterable[Entry], own: Entry) -> list[str]:
    """
    All URLs of a checkpoint in the order in which they may be removed: files, manifest, then directories, which end with
    a slash, the inner ones first.  The last is that of the job.
    """
    names = [*dict.fromkeys(entry.name for entry in entries), own.name]
    inner = [f"{url(place, name)}/" for name in above(names)]
    return [*(url(place, name) for name in names), *inner, f"{place}/", f"{posixpath.dirname(place)}/"]


def above(names: Iterable[str]) -> list[str]:
    """The directories in which files are, by their names, the inner ones first."""
    directories = {directory for name in names for directory in _above(name)}
    return sorted(directories, key=lambda name: (-name.count("/"), name))


def _above(name: str) -> Sequence[str]:
    parts = name.split("/")[:-1]
    return ["/".join(parts[: count + 1]) for count in range(len(parts))]


def _entry(text: str) -> Entry:
    escaped, rest = text.startswith("\\"), text.removeprefix("\\")
    sha256, star, name = rest[:64], rest[64:66], rest[66:]
    if len(sha256) != 64 or not sha256.isalnum() or star not in {" *", "  "} or not name:
        raise CheckpointError(f"the manifest has a line that is none: {text[:100]!r}")
    if escaped:
        name = "\\".join(part.replace("\\n", "\n").replace("\\r", "\r") for part in name.split("\\\\"))
    return Entry(name, sha256)
