"""
Addresses of objects in S3 that prove by themselves that they may be used: Signature Version 4 of AWS, in the query.

Pure.  Such an address permits one operation on one object for some time; the key stays where the address was
made.
"""

import re
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Final
from urllib.parse import quote, urlsplit

import msgspec

from kettle.transfer.file_lists import is_url, items, remaps, scheme_of, shown
from kettle_wire.ads import Ad

METHODS: Final = ("s3", "gs")
"""The URL schemes whose objects are reached so."""
LONGEST: Final = 604_800
"""Seconds that an address may be good for, by the rules of the service."""
ACCESS_KEY, SECRET_KEY, REGION, ENDPOINT = "EC2AccessKeyId", "EC2SecretAccessKey", "AWSRegion", "S3Endpoint"
"""Attributes of jobs: two names of files, the region, and the address of a service that is not Amazon's."""

_ALGORITHM: Final = "AWS4-HMAC-SHA256"
_DEFAULT_REGION: Final = "us-east-1"
_HOSTS: Final[Mapping[str, str]] = {"gs": "storage.googleapis.com"}
_AMAZON: Final = re.compile(r"(?:.+\.)?s3[.-](?P<region>[a-z0-9-]+)\.amazonaws\.com(?:\.cn)?")


class Key(msgspec.Struct, frozen=True):
    """What a service knows somebody by."""

    id: str
    secret: str

    def __repr__(self) -> str:
        return f"Key({self.id!r})"


class Place(msgspec.Struct, frozen=True):
    """An object as the web knows it; `region` is part of what is signed."""

    url: str
    region: str


def place(url: str, *, region: str = "", endpoint: str = "") -> Place:
    """
    Where the object of an `s3://` or `gs://` URL is.

    The first part of the URL is a bucket, or, if there is a dot or a port in it, a host: `s3://host/bucket/object`.
    With an `endpoint`, as `https://s3.example.org`, it is always a bucket.  Raises ValueError.
    """
    scheme, first, name = scheme_of(url), *_parts(url)
    if endpoint:
        if urlsplit(endpoint).scheme not in {"http", "https"} or not urlsplit(endpoint).netloc:
            raise ValueError(
                f"{endpoint} is no address of a service: write https://HOST or https://HOST:PORT"
            )
        return Place(f"{endpoint.rstrip('/')}/{first}/{name}", region or _DEFAULT_REGION)
    if "." in first or ":" in first:
        known = _AMAZON.fullmatch(first)
        return Place(f"https://{first}/{name}", region or (known["region"] if known else _DEFAULT_REGION))
    if (host := _HOSTS.get(scheme)) is not None:
        return Place(f"https://{host}/{first}/{name}", region or "auto")
    region = region or _DEFAULT_REGION
    return Place(f"https://{first}.s3.{region}.amazonaws.com/{name}", region)


def _parts(url: str) -> tuple[str, str]:
    first, _, name = url.partition("://")[2].partition("/")
    if not first or not name:
        raise ValueError(f"{shown(url)} does not name an object: write {scheme_of(url)}://BUCKET/OBJECT")
    if "?" in name or "#" in name:
        raise ValueError(f"{shown(url)}: the name of an object cannot have ? or # here")
    return first, quote(name, safe="/-._~")


def signed(place: Place, method: str, key: Key, *, at: float, lifetime: int) -> str:
    """
    The address with its proof: good for `method` (GET or PUT), `lifetime` seconds from `at` (seconds since 1970).
    """
    import hashlib  # code that only reads addresses signs none, and these take long to load
    import hmac

    parts = urlsplit(place.url)
    stamp = datetime.fromtimestamp(int(at), UTC).strftime("%Y%m%dT%H%M%SZ")
    scope = f"{stamp[:8]}/{place.region}/s3/aws4_request"
    query = "&".join(
        f"{name}={quote(value, safe='-._~')}"
        for name, value in (
            ("X-Amz-Algorithm", _ALGORITHM),
            ("X-Amz-Credential", f"{key.id}/{scope}"),
            ("X-Amz-Date", stamp),
            ("X-Amz-Expires", str(min(lifetime, LONGEST))),
            ("X-Amz-SignedHeaders", "host"),
        )
    )
    asked = "\n".join((method, parts.path, query, f"host:{parts.netloc}", "", "host", "UNSIGNED-PAYLOAD"))
    text = "\n".join((_ALGORITHM, stamp, scope, hashlib.sha256(asked.encode()).hexdigest()))
    secret = f"AWS4{key.secret}".encode()
    for part in scope.split("/"):
        secret = hmac.digest(secret, part.encode(), "sha256")
    return f"{place.url}?{query}&X-Amz-Signature={hmac.digest(secret, text.encode(), 'sha256').hex()}"


def belongs(ad: Ad, url: str, *, upload: bool) -> bool:
    """Whether a job has named this object to read, or to write: a machine gets no address of any other."""
    if scheme_of(url) not in METHODS or any(part in {"", ".", ".."} for part in url.split("/")[3:]):
        return False
    if not upload:
        return any(url in items(_text(ad, name)) for name in ("TransferInput", "PublicInputFiles"))
    if (all_of_it := _text(ad, "OutputDestination")) and url.startswith(f"{all_of_it.rstrip('/')}/"):
        return True
    targets = (each for each in remaps(_text(ad, "TransferOutputRemaps")).targets.values() if is_url(each))
    return any(url == target or url.startswith(f"{target.rstrip('/')}/") for target in targets)


def _text(ad: Ad, name: str) -> str:
    value = ad.get(name)
    return value if isinstance(value, str) else ""
