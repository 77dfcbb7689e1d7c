"""
Addresses that prove by themselves that they may be used: beside what Amazon has published, and beside botocore.
"""

import importlib
from datetime import UTC, datetime
from functools import cache
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

from kettle.transfer.s3_signatures import Key, Place, belongs, place, signed
from kettle_wire.ads import Ad

KEY = Key("AKIAIOSFODNN7EXAMPLE", "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY")


def test_the_published_example() -> None:
    """From Amazon's description of query authentication: its time, its key, its signature."""
    there = Place("https://examplebucket.s3.amazonaws.com/test.txt", "us-east-1")
    at = datetime(2013, 5, 24, tzinfo=UTC).timestamp()
    query = parse_qs(urlsplit(signed(there, "GET", KEY, at=at, lifetime=86_400)).query)

    assert ["aeeed9bbccd4d02ee5c0109b86d86835f995330da4c265957d157751f604d404"] == query["X-Amz-Signature"]


@cache  # it takes botocore 0.2 s of a core to make one
def botocores(region: str) -> Any:
    """Its client of a store on this machine; it has no types."""
    session = importlib.import_module("botocore.session")
    config = importlib.import_module("botocore.config")
    return session.get_session().create_client(
        "s3",
        aws_access_key_id=KEY.id,
        aws_secret_access_key=KEY.secret,
        region_name=region,
        endpoint_url="http://127.0.0.1:5000",
        config=config.Config(signature_version="s3v4", s3={"addressing_style": "path"}),
    )


@pytest.mark.slow  # botocore takes long to make a client
@pytest.mark.parametrize("name", ["plain", "a/b c/d", "ü~*'()!$&+,;=:@", "ends/"])
@pytest.mark.parametrize(("method", "operation"), [("GET", "get_object"), ("PUT", "put_object")])
@pytest.mark.parametrize("region", ["us-east-1", "eu-central-1"])
def test_botocore_signs_the_same(name: str, method: str, operation: str, region: str) -> None:
    """The address is the same for every character that a name may have."""
    theirs: str = botocores(region).generate_presigned_url(
        operation, Params={"Bucket": "bucket", "Key": name}, ExpiresIn=600
    )
    query = parse_qs(urlsplit(theirs).query)
    at = datetime.strptime(query["X-Amz-Date"][0], "%Y%m%dT%H%M%S%z").timestamp()
    there = place(f"s3://bucket/{name}", region=region, endpoint="http://127.0.0.1:5000/")
    ours = signed(there, method, KEY, at=at, lifetime=600)

    assert urlsplit(theirs).path == urlsplit(ours).path
    assert query == parse_qs(urlsplit(ours).query)


@pytest.mark.parametrize(
    ("url", "region", "endpoint", "expected"),
    [
        ("s3://b/k/l", "", "", Place("https://b.s3.us-east-1.amazonaws.com/k/l", "us-east-1")),
        ("s3://b/k", "eu-west-3", "", Place("https://b.s3.eu-west-3.amazonaws.com/k", "eu-west-3")),
        ("s3://b.s3.eu-west-1.amazonaws.com/k", "", "", Place("https://b.s3.eu-west-1.amazonaws.com/k", "eu-west-1")),
        ("s3://s3.site.org:9000/b/k", "", "", Place("https://s3.site.org:9000/b/k", "us-east-1")),
        ("s3://b.c/k", "", "http://h:1/", Place("http://h:1/b.c/k", "us-east-1")),
        ("gs://b/k", "", "", Place("https://storage.googleapis.com/b/k", "auto")),
    ],
)  # fmt: skip
def test_where_an_object_is(url: str, region: str, endpoint: str, expected: Place) -> None:
    """A bucket of Amazon's or of Google's, a host, or a bucket of the service that the job names."""
    assert expected == place(url, region=region, endpoint=endpoint)


@pytest.mark.parametrize("url", ["s3://b", "s3:///k", "s3://b/k?versionId=1", "s3://b/k#l"])
def test_what_is_no_object(url: str) -> None:
    """It is refused with the URL."""
    with pytest.raises(ValueError, match="s3://"):
        place(url)


@pytest.mark.parametrize("endpoint", ["s3.site.org", "ftp://h", "https://"])
def test_what_is_no_service(endpoint: str) -> None:
    """It is refused with an example."""
    with pytest.raises(ValueError, match="https://HOST"):
        place("s3://b/k", endpoint=endpoint)


@pytest.mark.parametrize(
    ("url", "upload", "expected"),
    [
        ("s3://b/in", False, True),
        ("s3://b/public", False, True),
        ("s3://b/in", True, False),
        ("s3://b/other", False, False),
        ("s3://b/out/x", True, True),
        ("s3://b/out/x", False, False),
        ("s3://b/out", True, False),
        ("s3://b/outside", True, False),
        ("s3://b/out/../in", True, False),
        ("s3://c/one", True, True),
        ("s3://c/tree/a/b", True, True),
        ("s3://c/tree2", True, False),
        ("https://b/in", False, False),
    ],
)
def test_a_machine_gets_what_the_job_names(url: str, upload: bool, expected: bool) -> None:
    """To read what the job reads, and to write below where it writes; nothing else of its owner's."""
    ad: Ad = {
        "TransferInput": "a, s3://b/in",
        "PublicInputFiles": "s3://b/public",
        "OutputDestination": "s3://b/out",
        "TransferOutputRemaps": "one = s3://c/one; tree = s3://c/tree; x = /home/x",
    }
    assert expected is belongs(ad, url, upload=upload)


def test_a_key_does_not_show_its_secret() -> None:
    """Not even in a traceback."""
    assert KEY.secret not in repr(KEY)
