"""
Input files of jobs, taken from people over HTTP and given to the access point, over a connection of the person who sends them.

What comes is passed on piece by piece, and kept nowhere here.
"""

import asyncio
import base64
import hashlib
import re
from collections.abc import AsyncIterator, Iterable, Iterator, Sequence
from typing import Final, Protocol

import msgspec

from kettle.client import Client
from kettle.transfer.file_lists import is_inside
from kettle_services.gateway.rest.access_points import AccessPoints
from kettle_services.gateway.rest.application import Answer, Asked
from kettle_services.gateway.rest.connections import PersonConnections
from kettle_services.gateway.rest.jobs import job_name
from kettle_services.gateway.rest.parameters import LARGEST
from kettle_services.gateway.rest.refusals import RequestRefused, refused_field
from kettle_wire.commands.schedd import FIND_SPOOL, FindSpool
from kettle_wire.commands.spooling import SPOOL_JOBS, SPOOL_PARTS, Part, SpoolJobs, SpoolParts
from kettle_wire.rest.problem import FieldProblem, ProblemCode
from kettle_wire.rest.spooling import FileSent, GiveInputs, InputFile, Inputs, InputsGiven, InputsOf, PutFile
from kettle_wire.spooling import PIECE, Manifest, Procs, Share, SpooledFile

LARGEST_PART: Final = 4 * PIECE
"""Bytes that go to the access point at once."""
_PATIENCE_S: Final = 30.0
"""For so many bytes of a body to come."""
_ALL: Final = 2**31 - 1
_NAMED: Final = 100
"""Missing files that a refusal names."""
_RANGE: Final = re.compile(r"bytes (?:(\d{1,19})-(\d{1,19})|\*)/(\d{1,19})")
_DIGEST: Final = re.compile(r"sha-256=:([A-Za-z0-9+/]{43}=):")
_EXECUTABLE: Final = 0o755
_PLAIN: Final = 0o644


class _Place(msgspec.Struct, frozen=True):
    """Where the files of a cluster go."""

    client: Client
    cluster: int
    shadow: str

    async def put(self, part: Part) -> int:
        """Keep a part of a file; how many bytes of it are there.  Raises CommandRefusedError."""
        request = SpoolParts(cluster=self.cluster, parts=[part])
        return (await self.client.requests.ask(SPOOL_PARTS, request, name=self.shadow)).have[0]


class _Announced(msgspec.Struct, frozen=True):
    """What a body is said to be."""

    sha256: str
    size: int
    offset: int


class SmallFile(msgspec.Struct, frozen=True):
    """An input file that is here."""

    path: str
    content: bytes
    executable: bool = False


async def give_small(client: Client, cluster: int, files: Sequence[Sequence[SmallFile]]) -> None:
    """
    Have the jobs of a cluster begin with these files, in the order of the jobs.

    Raises CommandRefusedError: there is no such cluster, or it is somebody else's.
    """
    place = await _place(client, cluster)
    jobs: list[InputsOf] = []
    for proc, own in enumerate(files):
        jobs.append(InputsOf(first=proc, files=[await _passed_small(place, file) for file in own]))
    inputs = Inputs(jobs=jobs)
    await _given(place, inputs, manifest_of(inputs))


async def _passed_small(place: _Place, file: SmallFile) -> InputFile:
    said = _Announced(hashlib.sha256(file.content).hexdigest(), len(file.content), 0)
    await _passed_on(place, said, _cut(file.content))
    return InputFile(path=file.path, sha256=said.sha256, size=said.size, executable=file.executable)


class HeldFile(Protocol):
    """An input file of which all is known, and which is read when it is passed on."""

    @property
    def about(self) -> InputFile:
        """What the jobs have."""
        ...

    def read(self) -> AsyncIterator[bytes]:
        """Its content, piece by piece."""
        ...


async def give_held(client: Client, cluster: int, files: Iterable[HeldFile]) -> None:
    """
    Have all jobs of a cluster begin with these files.

    Raises CommandRefusedError: there is no such cluster, or it is somebody else's. Raises RequestRefused: they cannot be named like
    this.
    """
    held = list(files)
    inputs = Inputs(files=[each.about for each in held])
    manifest = manifest_of(inputs)
    place = await _place(client, cluster)
    for each in held:
        await _passed_on(place, _Announced(each.about.sha256, each.about.size, 0), each.read())
    await _given(place, inputs, manifest)


class SpoolCommands:
    """Carries them out."""

    def __init__(self, people: PersonConnections, access_points: AccessPoints) -> None:
        self._people = people
        self._access_points = access_points

    async def put(self, asked: Asked) -> Answer:
        """A file, or a part of one."""
        parameters: PutFile = asked.parameters
        _require_inside(parameters.path, "/path/path")
        job, schedd = job_name(parameters.id)
        async with self._people.of(asked.person) as client:
            there = await self._access_points.at(client, schedd, "/path/id")
            place = await _place(there, job.cluster)
            digest = asked.header("Repr-Digest")
            if digest:
                said = _announced(asked, digest)
                have = await _passed_on(place, said, body_pieces(asked))
            else:
                data = await _whole(asked)
                said = _Announced(hashlib.sha256(data).hexdigest(), len(data), 0)
                have = await _passed_on(place, said, _cut(data))
        return Answer(FileSent(path=parameters.path, sha256=said.sha256, size=said.size, have=have))

    async def give(self, asked: Asked) -> Answer:
        """Which job has which files."""
        parameters: GiveInputs = asked.parameters
        number, _, schedd = parameters.id.partition("@")
        if int(number) > _ALL:
            raise RequestRefused(404, ProblemCode.NOT_FOUND, f"there is no cluster {parameters.id}")
        manifest = manifest_of(asked.body)
        async with self._people.of(asked.person) as client:
            there = await self._access_points.at(client, schedd, "/path/id")
            digest = await _given(await _place(there, int(number)), asked.body, manifest)
        return Answer(InputsGiven(id=f"{number}@{there.pool.schedd}", manifest=digest))


async def _given(place: _Place, inputs: Inputs, manifest: Manifest) -> str:
    """
    Have the jobs begin with files that are there; the digest of what was said. Raises RequestRefused: some are not.
    """
    data = msgspec.msgpack.encode(manifest)
    said = _Announced(hashlib.sha256(data).hexdigest(), len(data), 0)
    await _passed_on(place, said, _cut(data))
    request = SpoolJobs(cluster=place.cluster, manifest=said.sha256)
    missing = (await place.client.requests.ask(SPOOL_JOBS, request, name=place.shadow)).missing
    if missing:
        raise _missing(inputs, set(missing))
    return said.sha256


def manifest_of(body: Inputs) -> Manifest:
    """The files of each job as its access point is told of them; raises RequestRefused."""
    common = _by_path(body.files, "/body/files")
    lists = [list(common.values())]
    shares: list[Share] = []
    at = 0
    for number, some in sorted(enumerate(body.jobs), key=lambda each: each[1].first):
        if some.first < at or some.first + some.count > _ALL:
            raise refused_field(
                f"/body/jobs/{number}",
                f"job {some.first} has files twice, or a number too large",
                code=ProblemCode.BODY_INVALID,
                status=422,
            )
        if some.first > at:
            shares.append(Share(Procs(at, some.first - at), 0))
        shares.append(Share(Procs(some.first, some.count), len(lists)))
        lists.append(list((common | _by_path(some.files, f"/body/jobs/{number}/files")).values()))
        at = some.first + some.count
    shares.append(Share(Procs(at, _ALL - at), 0))
    return Manifest(lists=lists, shares=shares)


def _by_path(files: list[InputFile], pointer: str) -> dict[str, SpooledFile]:
    found: dict[str, SpooledFile] = {}
    for number, file in enumerate(files):
        _require_inside(file.path, f"{pointer}/{number}/path", status=422)
        if file.path in found:
            raise refused_field(
                f"{pointer}/{number}/path",
                f"{file.path} comes twice",
                code=ProblemCode.BODY_INVALID,
                status=422,
            )
        mode = _EXECUTABLE if file.executable else _PLAIN
        found[file.path] = SpooledFile(file.path, file.sha256, file.size, mode)
    return found


def _require_inside(path: str, pointer: str, *, status: int = 400) -> None:
    if not is_inside(path):
        raise refused_field(
            pointer, "the path has to lead to a file inside of the job's sandbox", status=status
        )


def _missing(body: Inputs, digests: set[str]) -> RequestRefused:
    errors = [
        FieldProblem(pointer, f"{file.path} has not been sent, or not all of it")
        for pointer, file in _all_files(body)
        if file.sha256 in digests
    ]
    return RequestRefused(
        409,
        ProblemCode.FILES_MISSING,
        f"{len(errors)} files are not at the access point yet: send them with PUT, and this again; the jobs stay held",
        errors=errors[:_NAMED],
    )


def _all_files(body: Inputs) -> Iterator[tuple[str, InputFile]]:
    for at, file in enumerate(body.files):
        yield f"/body/files/{at}", file
    for number, some in enumerate(body.jobs):
        for at, file in enumerate(some.files):
            yield f"/body/jobs/{number}/files/{at}", file


async def _place(client: Client, cluster: int) -> _Place:
    """Raises CommandRefusedError: there is no such cluster, or it is somebody else's."""
    await client.requests.transport.connection()
    found = await client.requests.ask(FIND_SPOOL, FindSpool(cluster=cluster))
    return _Place(client, cluster, found.shadow)


def _announced(asked: Asked, digest: str) -> _Announced:
    """What the headers say of the body; raises RequestRefused."""
    found = _DIGEST.fullmatch(digest)
    if found is None:
        raise refused_field(
            "/header/Repr-Digest", "Repr-Digest has to be sha-256=:BASE64:, of the whole file"
        )
    sha256 = base64.b64decode(found[1]).hex()
    length = asked.request.content_length
    said = asked.header("Content-Range")
    if not said:
        if length is None:
            raise refused_field(
                "/header/Content-Length", "say how long the file is, with Content-Length or Content-Range"
            )
        return _Announced(sha256, length, 0)
    part = _RANGE.fullmatch(said)
    if part is None:
        raise refused_field(
            "/header/Content-Range", "Content-Range has to be bytes FIRST-LAST/SIZE, or bytes */SIZE"
        )
    size = int(part[3])
    if part[1] is None:
        return _Announced(sha256, size, size)
    first, end = int(part[1]), int(part[2]) + 1
    if not first < end <= size or (length is not None and length != end - first):
        raise refused_field(
            "/header/Content-Range", f"Content-Range does not fit a body of {length} bytes: {said}"
        )
    return _Announced(sha256, size, first)


async def _passed_on(place: _Place, said: _Announced, data: AsyncIterator[bytes]) -> int:
    """
    Give what comes to the access point, up to where that has something else than we think; how many bytes are there.
    """
    have, at = await place.put(Part(said.sha256, said.size, min(said.offset, said.size))), said.offset
    async for piece in data:
        end = at + len(piece)
        if have == said.size or have < at:
            break
        if have < end:
            have = await place.put(Part(said.sha256, said.size, have, piece[have - at :]))
        at = end
    return have


async def body_pieces(asked: Asked) -> AsyncIterator[bytes]:
    """The body, as it comes; raises RequestRefused: it comes too slowly."""
    content, left = asked.request.content, bytearray()
    while True:
        try:
            async with asyncio.timeout(_PATIENCE_S):
                while len(left) < LARGEST_PART and (some := await content.read(LARGEST_PART - len(left))):
                    left += some
        except TimeoutError as error:
            raise _too_slow() from error
        if not left:
            return
        yield bytes(left)
        left.clear()


async def _whole(asked: Asked) -> bytes:
    """A small body; raises RequestRefused, or HTTPRequestEntityTooLarge."""
    if asked.header("Content-Range"):
        raise refused_field(
            "/header/Repr-Digest", "a part of a file needs Repr-Digest, the SHA-256 of the whole file"
        )
    if (asked.request.content_length or 0) > LARGEST:
        raise RequestRefused(
            413,
            ProblemCode.BODY_TOO_LARGE,
            f"a file of more than {LARGEST:,} bytes needs Repr-Digest, its SHA-256: then it may have any length",
        )
    try:
        async with asyncio.timeout(_PATIENCE_S):
            return await asked.request.read()
    except TimeoutError as error:
        raise _too_slow() from error


async def _cut(data: bytes) -> AsyncIterator[bytes]:
    for at in range(0, len(data), LARGEST_PART):
        yield data[at : at + LARGEST_PART]


def _too_slow() -> RequestRefused:
    return RequestRefused(
        408,
        ProblemCode.TOO_SLOW,
        f"of the body less than {LARGEST_PART >> 20} MiB came in {_PATIENCE_S:g} s: what came is kept, go on behind it",
    )
