"""
Files that people and jobs send and fetch: addresses are given to who may have them, and the addresses permit.
"""

import asyncio
import time
from collections.abc import AsyncIterator, Sequence
from typing import Annotated, Final

import msgspec
from aiohttp import BodyPartReader, StreamReader, web

from kettle.auth.mapping.levels import Level
from kettle.prominence.addresses import AREAS, OBJECTS, Place, output_place
from kettle.prominence.substitution import leads_outside
from kettle_services.gateway.prominence.application import Asked, OpenRoute, Route, refused, reply, token_of
from kettle_services.gateway.prominence.object_directory import ObjectDirectory, Stored
from kettle_services.gateway.prominence.signatures import Signer
from kettle_services.gateway.rest.persons import Person

_DAY_S: Final = 86400.0
_SHOWN_FOR_S: Final = 7 * _DAY_S
"""An address under which somebody fetches a result."""
_SENT_WITHIN_S: Final = 10 * _DAY_S
_SENT_BY_JOB_S: Final = 7200.0
_PATIENCE_S: Final = 30.0
"""For the next bytes of a body to come."""
_PIECE: Final = 1 << 18
_FIELD: Final = 1024
"""Bytes of a field beside the file."""
_NO_PAGE: Final = {
    "Cache-Control": "private, no-cache",
    "Content-Disposition": "attachment",
    "Content-Security-Policy": "sandbox; default-src 'none'",
    "Content-Type": "application/octet-stream",
}


class Upload(msgspec.Struct, frozen=True):
    """What somebody wants to send."""

    filename: Annotated[str, msgspec.Meta(min_length=1, max_length=512)]
    checksum: Annotated[str, msgspec.Meta(pattern=r"^[0-9a-fA-F]{64}$")] | None = None
    """SHA-256, in hexadecimal digits."""


class Output(msgspec.Struct, frozen=True):
    """A result of a job."""

    name: Annotated[str, msgspec.Meta(min_length=1, max_length=512)]


class Data:
    """Gives addresses, and does what they permit."""

    def __init__(self, objects: ObjectDirectory, signer: Signer) -> None:
        self._objects = objects
        self._signer = signer

    def routes(self) -> Sequence[Route]:
        """What is asked with a token."""
        return (
            Route("GET", "/data", Level.READ, self.list),
            Route("GET", "/data/{path:.*}", Level.READ, self.list),
            Route("POST", "/data", Level.WRITE, self.upload),
            Route("POST", "/data/upload", Level.WRITE, self.upload),
            Route("DELETE", "/data/{path:.+}", Level.WRITE, self.remove),
        )

    def open_routes(self) -> Sequence[OpenRoute]:
        """What is asked at an address that permits it."""
        path = OBJECTS + "/{area}/{name:.+}"
        return (
            OpenRoute("GET", path, self.fetched),
            OpenRoute("PUT", path, self.sent),
            OpenRoute("POST", path, self.sent),
            OpenRoute("POST", "/data/output", self.output),
        )

    async def list(self, asked: Asked) -> web.StreamResponse:
        """One's own uploads, or those of a group."""
        path = asked.request.match_info.get("path", "").strip("/")
        if not path:
            return reply(
                [_shown(each, "") for each in await self._objects.list("uploads", asked.person.name)]
            )
        group = group_of(asked.person, path)
        if group is None:
            raise refused("Not authorized to access this path", 403)
        found = [_shown(each, f"{group}/") for each in await self._objects.list("groups", group)]
        return reply([each for each in found if str(each["name"]).startswith(path)])

    async def upload(self, asked: Asked) -> web.StreamResponse:
        """An address at which something can be sent."""
        said: Upload = await asked.document(Upload)
        place = place_of(asked.person, said.filename)
        expires = time.time() + _SENT_WITHIN_S
        if said.checksum is None:
            return reply({"url": self._signer.url("PUT", place, expires=expires)}, 201)
        digest = said.checksum.lower()
        url = self._signer.url("POST", place, expires=expires, sha256=digest)
        return reply({"url": url, "fields": {"checksum": digest}}, 201)

    async def remove(self, asked: Asked) -> web.StreamResponse:
        """One's own, or a group's."""
        path = asked.request.match_info["path"]
        if not await self._objects.remove(place_of(asked.person, path)):
            raise refused(f"there is no object {path}")
        return web.Response(status=204)

    async def output(self, request: web.Request) -> web.StreamResponse:
        """A new address for a result, which a running job asks for with its own token."""
        now = time.time()
        owner, identifier = self._signer.job_of(token_of(request), now=now)
        try:
            said = msgspec.json.decode(await request.read(), type=Output)
        except (msgspec.MsgspecError, UnicodeDecodeError) as error:
            raise refused(f"the body is not what is expected here: {error}") from error
        if leads_outside(said.name):
            raise refused(f"a result is below the job's directory, and {said.name} is not")
        place = output_place(owner, identifier, said.name, directory=False)
        return reply({"url": self._signer.url("PUT", place, expires=now + _SENT_BY_JOB_S)}, 201)

    async def fetched(self, request: web.Request) -> web.StreamResponse:
        """An object, or a part of it."""
        place = _place(request)
        self._signer.permitted("GET", place, request.query, now=time.time())
        there = await self._objects.where(place)
        if there is None:
            raise refused(f"there is no object {place.name}")
        if isinstance(there, str):
            return web.Response(status=307, headers={"Location": there, "Cache-Control": "no-store"})
        return web.FileResponse(there, headers=_NO_PAGE)

    async def sent(self, request: web.Request) -> web.StreamResponse:
        """An object comes: as it is (PUT), or in a form behind its digest (POST)."""
        place = _place(request)
        sha256 = self._signer.permitted(request.method, place, request.query, now=time.time())
        if request.method == "PUT":
            body = _arriving(request.content)
            await self._objects.put(place, body, size=request.content_length, sha256=sha256)
            return web.Response(status=201)
        await self._objects.put(place, _of_form(request, sha256), size=None, sha256=sha256)
        return web.Response(status=204)


def groups_of(person: Person) -> set[str]:
    """
    The groups of the person by their names, as the pool's rules make them of a token, and not as its issuer says.
    """
    return {each.strip("/") for each in person.mapped.groups} - {""}


def group_of(person: Person, path: str) -> str | None:
    """
    The group of the person whose area a path is in: whole parts of it count, and the longest group; None: no such group.
    """
    mine = groups_of(person)
    parts = path.split("/")
    names = ("/".join(parts[:count]) for count in range(len(parts), 0, -1))
    return next((name for name in names if name in mine), None)


def place_of(person: Person, name: str) -> Place:
    """
    Where an upload of this name is: behind a group's name it is that group's. Raises RequestRefused: the person is not in it.
    """
    if "/" not in name:
        return Place("uploads", person.name, name)
    group = group_of(person, name.rpartition("/")[0])
    if group is None:
        raise refused(f"Not authorized to access {name}: you are in no group of this name", 403)
    return Place("groups", group, name[len(group) + 1 :])


def address_of(signer: Signer, place: Place) -> str:
    """Where somebody fetches an object of his own."""
    return signer.url("GET", place, expires=time.time() + _SHOWN_FOR_S)


def _shown(stored: Stored, before: str) -> dict[str, str | int]:
    changed = time.strftime("%Y-%m-%d %H:%M:%S", time.gmtime(stored.changed))
    return {"name": before + stored.name, "size": stored.size, "lastModified": changed}


def _place(request: web.Request) -> Place:
    try:
        area = AREAS[request.match_info["area"]]
    except KeyError as error:
        raise refused("there is no such place") from error
    return Place(area, request.query.get("of", ""), request.match_info["name"])


async def _arriving(content: StreamReader) -> AsyncIterator[bytes]:
    while True:
        async with asyncio.timeout(_PATIENCE_S):
            piece = await content.read(_PIECE)
        if not piece:
            return
        yield piece


async def _of_form(request: web.Request, sha256: str) -> AsyncIterator[bytes]:
    """The file of a form; raises RequestRefused: it is none, or not the one that was announced."""
    if not request.content_type.startswith("multipart/"):
        raise refused("this address takes a form with the fields that came with it, and the file")
    announced = False
    try:
        form = await request.multipart()
    except ValueError as error:
        raise refused(f"the form cannot be read: {error}") from error
    async for part in form:
        if not isinstance(part, BodyPartReader):
            break
        if part.name == "checksum":
            announced = (await part.read_chunk(_FIELD)).decode("ascii", "replace").strip() == sha256
        elif part.name == "file" and announced:
            while True:
                async with asyncio.timeout(_PATIENCE_S):
                    piece = await part.read_chunk(_PIECE)
                if not piece:
                    return
                yield piece
    raise refused(
        "the form has to have the field checksum as it came with this address, and behind it the file"
    )
