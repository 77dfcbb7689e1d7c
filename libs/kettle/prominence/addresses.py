"""
Addresses that permit by themselves what they say: to read or to write one object of people or jobs, for some time.

What is signed is the method, the place, the end and the digest of what may be written, so none of them can be changed.
A `Permit` is a key of its own, with which its holder makes addresses of one area, and of no other: a workflow has some, because
nobody knows the names of all of its files when it is submitted.
"""

import base64
import hmac
from collections.abc import Mapping
from typing import Final, Literal
from urllib.parse import quote, urlencode

import msgspec

Area = Literal["uploads", "groups", "scratch", "snapshots", "documents"]
"""What people have sent for themselves, or for a group; what jobs have sent; what was taken of running jobs; what was submitted."""
AREAS: Final[Mapping[str, Area]] = {
    "uploads": "uploads",
    "groups": "groups",
    "scratch": "scratch",
    "snapshots": "snapshots",
}
"""By how an address calls them."""
OBJECTS: Final = "/objects"
"""Where addresses of objects are, below that of the interface."""
LONGEST_NAME: Final = 240
"""Characters of a file's name, which file systems limit."""
MARK: Final = "_"
"""Before each name, so that none is `.` or `..`."""
_ARCHIVE: Final = ".tgz"
"""What a directory is sent as."""
_PERMIT: Final = "permit"
AS_JOB: Final = "JOB"
"""In the place of a method: what a running job itself may ask."""


class Place(msgspec.Struct, frozen=True):
    """Where an object is."""

    area: Area
    owner: str
    """A person, or a group."""
    name: str
    """It may have slashes, which mean nothing."""


class Permit(msgspec.Struct, frozen=True, kw_only=True):
    """What somebody may make addresses for, and with which key."""

    base: str
    """How all of them begin."""
    method: str
    area: Area
    owner: str
    within: str
    """How the names of all objects begin that it is for; empty: all of the owner in this area."""
    expires: int
    """Seconds since the epoch."""
    key: bytes

    def url(self, name: str) -> str:
        """The address of an object, whose name begins as it has to."""
        assert name.startswith(self.within), f"{name} is not within {self.within}"
        place = Place(self.area, self.owner, name)
        said = {"of": self.owner, "expires": str(self.expires), "within": self.within}
        said["signature"] = signature(self.key, self.method, place, self.expires)
        return address(self.base, place, said)


class JobToken(msgspec.Struct, frozen=True):
    """
    What a running job shows: that it is the one whose results are kept there, and nothing else of its owner's.
    """

    owner: str
    identifier: str
    """What its results are kept under."""
    within: str
    expires: int
    """Seconds since the epoch."""
    signature: str

    @classmethod
    def of(cls, permit: Permit, identifier: str) -> "JobToken":
        """The one of a job, by a permit for jobs."""
        place = Place(permit.area, permit.owner, identifier)
        said = signature(permit.key, permit.method, place, permit.expires)
        return cls(permit.owner, identifier, permit.within, permit.expires, said)

    def text(self) -> str:
        """As it is shown."""
        return base64.urlsafe_b64encode(msgspec.json.encode(self)).decode()

    @classmethod
    def read(cls, text: str) -> "JobToken":
        """Raises ValueError: it is none."""
        return msgspec.json.decode(base64.urlsafe_b64decode(text), type=cls)


def address(base: str, place: Place, said: Mapping[str, str]) -> str:
    """The address of an object with what it says of itself."""
    return f"{base}/{place.area}/{quote(place.name)}?{urlencode(said)}"


def signature(key: bytes, method: str, place: Place, end: int, sha256: str = "") -> str:
    """What nobody makes who has not the key."""
    text = msgspec.json.encode([method, place.area, place.owner, place.name, end, sha256])
    return hmac.digest(key, text, "sha256").hex()


def permit_key(key: bytes, method: str, place: Place, end: int) -> bytes:
    """The key of a permit; `place`: of whom, and how the names within begin."""
    text = msgspec.json.encode([_PERMIT, method, place.area, place.owner, place.name, end])
    return hmac.digest(key, text, "sha256")


def output_place(owner: str, identifier: str, name: str, *, directory: bool) -> Place:
    """Where a result of a job is kept."""
    return Place("scratch", owner, f"{identifier}/{name}{_ARCHIVE if directory else ''}")


def file_name(name: str) -> str:
    """
    What the file of an object is called, or the directory of an owner, which leads nowhere and is no other's.

    Raises ValueError: the name is too long.
    """
    # Without a dot: a server of files takes `x.gz` for a smaller form of `x`, and would send one object for another.
    made = MARK + quote(name, safe="").replace(".", "%2E")
    if len(made) > LONGEST_NAME or not name:
        raise ValueError(
            f"the name of an object has 1 to {LONGEST_NAME - 1} characters, others than letters and digits count as three"
        )
    return made
