"""Looking whether a file can be fetched by its URL, from here and now, without fetching it."""

import os
import time
import urllib.request
from pathlib import Path
from typing import Final

from kettle.transfer.file_lists import is_url, scheme_of, shown
from kettle.transfer.plugins import file, http, webdav, xroot
from kettle.transfer.recording import Recording, error_of
from kettle.transfer.xrootd_handshake import why_not
from kettle_wire.moved_files import CONTACT, PARAMETER, FileRecord

_ANSWER_S: Final = 10.0
"""For a server of XRootD to say that it is one; its client would try for minutes."""


def look(url: str) -> FileRecord:
    """What is known of a file: its size and its server, or why it is not to be had."""
    recording, timer = Recording(url), time.monotonic()
    try:
        size = _size(url)
    except (OSError, ValueError) as error:
        recording.failed(url, "origin", error_of(error), _sentence(error))
        return recording.record(0, time.monotonic() - timer, moved=False)
    return recording.record(size, time.monotonic() - timer, moved=True)


def _size(url: str) -> int:
    """Of the file.  Raises OSError or ValueError with a sentence."""
    if not is_url(url):
        raise xroot.XrootError(
            f"{url!r} is no URL, such as root://HOST//PATH or https://HOST/PATH", kind=PARAMETER
        )
    match scheme_of(url):
        case "root" | "roots" | "xroot" | "xroots":
            if why := xroot.lacks():
                raise ValueError(why)
            if why := why_not(url, within_s=_ANSWER_S):
                raise xroot.XrootError(why, kind=CONTACT)
            return xroot.size_at(url)
        case "http" | "https":
            return _length(url, {})
        case "dav" | "davs":
            address = webdav.address(url)
            return _length(address, dict(webdav.credentials(address, os.environ)))
        case "file":
            path = file.place(url)
            if not path.is_file():
                path.stat()
                raise ValueError(f"{path} is not a regular file")
            with Path(path).open("rb"):
                return path.stat().st_size
        case "s3" | "gs":
            raise ValueError(
                f"{shown(url)} needs keys, which are those of a job: try it with --as-job and --append 'aws_access_key_id_file = ...'"
            )
        case method:
            raise ValueError(
                f"nothing here looks at {method}:// URLs; a machine with a plugin for them may: try it with --as-job"
            )


def _length(url: str, headers: dict[str, str]) -> int:
    """By the first byte alone: not every server answers HEAD as it answers GET."""
    request = urllib.request.Request(http.spelled(url), headers={**headers, "Range": "bytes=0-0"})  # noqa: S310 - called for http and https
    try:
        with http.opened(request) as answer:
            total = (answer.headers["Content-Range"] or "").rpartition("/")[2]
            return int(total) if total.isdecimal() else int(answer.length or 0)
    except http.BrokenError as broken:
        raise http.HttpError(broken.why, broken.status, broken.kind) from broken


def _sentence(error: Exception) -> str:
    if isinstance(error, OSError) and error.strerror:
        return error.strerror + (f" ({os.fspath(error.filename)})" if error.filename else "")
    return str(error) or type(error).__name__
