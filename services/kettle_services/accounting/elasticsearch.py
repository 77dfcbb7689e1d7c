"""A store that speaks the bulk protocol of Elasticsearch and OpenSearch: what it made of each record."""

import io
import ssl
from base64 import b64encode
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final, Self, TypeAlias

import aiohttp
import msgspec

from kettle.projections.accounting_documents import Record, bulk

TIMEOUT_S: Final = 60.0
_OK: Final = range(200, 300)
_BUSY: Final = frozenset({429, 500, 502, 503, 504})
_TOO_LARGE: Final = 413
_LONGEST: Final = 300
_MOST_ANSWER: Final = 64 << 20
_PART: Final = 1 << 16
_LONGEST_REST_S: Final = 600.0
"""However long a store asks to be left alone."""
_READABLE: Final = 0o077


class NotNowError(Exception):
    """
    The store accepted nothing; the same records may be sent again, not before `after` seconds if it said so.
    """

    def __init__(self, why: str, after: float = 0.0) -> None:
        super().__init__(why)
        self.after = after


class TooLargeError(Exception):
    """These were too many records at once."""


class _Basic(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    user: str
    password: str

    def header(self) -> str:
        """As HTTP wants it."""
        return f"Basic {b64encode(f'{self.user}:{self.password}'.encode()).decode()}"


class _ApiKey(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    api_key: str

    def header(self) -> str:
        """As Elasticsearch wants it."""
        return f"ApiKey {self.api_key}"


class _Bearer(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    bearer: str

    def header(self) -> str:
        """As RFC 6750 wants it."""
        return f"Bearer {self.bearer}"


_Credentials: TypeAlias = _Basic | _ApiKey | _Bearer


class _Error(msgspec.Struct, frozen=True):
    type: str = ""
    reason: str = ""


class _Item(msgspec.Struct, frozen=True):
    status: int
    id: str = msgspec.field(name="_id", default="")
    error: _Error | None = None


class _Answer(msgspec.Struct, frozen=True):
    items: list[dict[str, _Item]]


class Outcomes(msgspec.Struct, frozen=True):
    """The results for some records, each in one of three ways."""

    taken: list[Record]
    later: list[Record]
    """The store was too busy for these."""
    refused: list[tuple[Record, str]]
    """It will not take these as they are, for the reason that it gave."""


_decode_answer: Final = msgspec.json.Decoder(_Answer).decode


class BulkStore:
    """One store."""

    @classmethod
    @asynccontextmanager
    async def open(
        cls, url: str, *, credentials: Path | None = None, ca: Path | None = None
    ) -> AsyncGenerator[Self]:
        """`ca`: the file of the authorities that vouch for it, if not those that this machine trusts."""
        async with aiohttp.ClientSession() as session:
            yield cls(session, url, credentials=credentials, ca=ca)

    def __init__(
        self, session: aiohttp.ClientSession, url: str, *, credentials: Path | None, ca: Path | None
    ) -> None:
        self._session = session
        self._url = f"{url.rstrip('/')}/_bulk"
        self._credentials = credentials
        self._ca = ca
        self._tls: ssl.SSLContext | bool | None = None if url.startswith("https:") else True

    async def send(self, index: str, records: Sequence[Record]) -> Outcomes:
        """Send once. Raises NotNowError, TooLargeError."""
        headers = {"Content-Type": "application/x-ndjson", "Accept": "application/json"}
        if self._credentials is not None:
            headers["Authorization"] = authorization(self._credentials)
        try:
            async with self._session.post(
                self._url,
                data=io.BytesIO(bulk(index, records)),
                headers=headers,
                ssl=self._trusted(),
                allow_redirects=False,  # what it shows to one server is not for another
                timeout=aiohttp.ClientTimeout(total=TIMEOUT_S),
            ) as response:
                if response.status == _TOO_LARGE:
                    raise TooLargeError
                if response.status not in _OK:
                    raise NotNowError(await _said(response), _after(response))
                data = await _whole(response)
        except (aiohttp.ClientError, OSError, TimeoutError) as error:
            raise NotNowError(f"{type(error).__name__}: {error}") from error
        return outcomes(records, data)

    def _trusted(self) -> ssl.SSLContext | bool:
        """Who may vouch for the store. Raises NotNowError for a file that does not say it."""
        if self._tls is None:
            try:
                self._tls = ssl.create_default_context(cafile=self._ca)
            except OSError as error:
                raise NotNowError(f"{self._ca} is no file of authorities: {error}") from error
        return self._tls


def outcomes(records: Sequence[Record], data: bytes) -> Outcomes:
    """Read an answer: it has one item for each record, in order. Raises NotNowError for one that has not."""
    try:
        items = [item for each in _decode_answer(data).items for item in each.values()]
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise NotNowError(f"its answer is none of the bulk protocol: {error}") from error
    if [item.id for item in items] != [record.id for record in records]:
        raise NotNowError(
            f"it answered for {len(items)} records, which are not the {len(records)} that were sent"
        )
    found = Outcomes([], [], [])
    for record, item in zip(records, items, strict=True):
        if item.status in _OK:
            found.taken.append(record)
        elif item.status in _BUSY:
            found.later.append(record)
        else:
            why = item.error or _Error()
            found.refused.append((record, f"{item.status} {why.type}: {why.reason}"[:_LONGEST]))
    return found


def authorization(path: Path) -> str:
    """
    The header for a file of credentials, which is read again each time, so that they can be replaced.

    Raises:
        NotNowError: the file cannot be used. No message contains its contents.
    """
    try:
        if path.stat().st_mode & _READABLE:
            raise NotNowError(f"{path} can be read by others: chmod 600 {path}")
        data = path.read_bytes()
    except OSError as error:
        raise NotNowError(f"{path}: {error.strerror}") from error
    kinds: tuple[type[_Credentials], ...] = (_Basic, _ApiKey, _Bearer)
    for kind in kinds:
        try:
            found = msgspec.json.decode(data, type=kind)
        except (msgspec.DecodeError, UnicodeDecodeError):
            continue
        if "\n" not in (header := found.header()) and "\r" not in header:
            return header
    raise NotNowError(
        f'{path} has none of {{"user": "...", "password": "..."}}, {{"api_key": "..."}} and {{"bearer": "..."}}'
    )


async def _whole(response: aiohttp.ClientResponse) -> bytes:
    """The answer, in as many parts as it comes."""
    data = bytearray()
    async for part in response.content.iter_chunked(_PART):
        data += part
        if len(data) > _MOST_ANSWER:
            raise NotNowError(f"its answer is longer than {_MOST_ANSWER:,} bytes")
    return bytes(data)


async def _said(response: aiohttp.ClientResponse) -> str:
    text = (await response.content.read(_LONGEST)).decode("utf-8", "replace")
    return f"{response.status} {response.reason}: {' '.join(text.split())}"


def _after(response: aiohttp.ClientResponse) -> float:
    value = response.headers.get("Retry-After", "")
    return min(float(value), _LONGEST_REST_S) if value.isdecimal() else 0.0
