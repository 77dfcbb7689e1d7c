"""What a plugin of ours notes while it moves one file."""

from typing import Final, cast, get_args
from urllib.parse import urlsplit

from kettle.transfer.file_lists import shown, without_secrets
from kettle_wire.moved_files import (
    AUTHORIZATION,
    LONGEST,
    MOST_TRIES,
    PARAMETER,
    SPECIFICATION,
    TRANSFER,
    ErrorType,
    FailedTry,
    FileRecord,
    Source,
    Verdict,
)

_HTTP: Final[dict[int, ErrorType]] = {
    401: AUTHORIZATION, 403: AUTHORIZATION, 407: AUTHORIZATION, 404: SPECIFICATION, 410: SPECIFICATION,
}  # fmt: skip


def error_of_status(status: int) -> ErrorType:
    """HTCondor's word for the answer of a web server that is no success."""
    return _HTTP.get(status, TRANSFER)


def error_of(error: Exception) -> ErrorType:
    """HTCondor's word for an error: what it says of itself, or what it looks like."""
    said = getattr(error, "kind", "")
    if said in get_args(ErrorType) and said:
        return cast("ErrorType", said)
    if isinstance(error, FileNotFoundError):
        return SPECIFICATION
    if isinstance(error, PermissionError):
        return AUTHORIZATION
    return TRANSFER if isinstance(error, OSError) else PARAMETER


def server_of(url: str) -> str:
    """Host and port of a URL, without a name or a password; empty if it has none."""
    try:
        parts = urlsplit(url)
        host, port = parts.hostname or "", parts.port
    except ValueError:
        return ""
    return (f"{host}:{port}" if port else host)[:LONGEST]


class Recording:
    """Of one file; a plugin that notes nothing says that it came from where its URL says."""

    def __init__(self, url: str, *, upload: bool = False) -> None:
        self._url = url
        self._upload = upload
        self._tries: list[FailedTry] = []
        self._source: Source = "origin"
        self._server = server_of(url)
        self._hit: bool | None = None
        self._checksum = ""
        self._verdict: Verdict = ""

    def failed(self, url: str, source: Source, error: ErrorType, why: str) -> None:
        """A try at the server of this URL has failed."""
        words = without_secrets(why)[:LONGEST]
        self._tries.append(FailedTry(server=server_of(url), source=source, error=error, why=words))

    def ended(self, url: str, error: ErrorType, why: str) -> None:
        """It was not moved; what was not noted as a try is one."""
        if not self._tries:
            self.failed(url, "origin", error, why)

    def served(self, url: str, source: Source, *, hit: bool | None = None) -> None:
        """The server of this URL serves it."""
        self._server, self._source, self._hit = server_of(url), source, hit

    def compared(self, kind: str, *, same: bool) -> None:
        """What arrived was compared with what the server says of it."""
        self._checksum, self._verdict = kind, "same" if same else "different"

    def record(self, size: int, seconds: float, *, moved: bool) -> FileRecord:
        """What is known at the end."""
        last = self._tries[-1].error if self._tries else ""
        return FileRecord(
            url=shown(self._url)[:LONGEST],
            upload=self._upload,
            source=self._source if moved else "",
            server=self._server if moved else "",
            hit=self._hit if moved else None,
            bytes=max(size, 0),
            seconds=round(max(seconds, 0.0), 3),
            tries=self._tries[-MOST_TRIES:],
            checksum=self._checksum,
            verdict=self._verdict,
            error="" if moved else last or TRANSFER,
        )
