"""
Files that pages need: style, scripts, icons.

Each is served under a name with its hash, so that it may be kept without end, and compressed once.  `VENDORED` says where those of
others are from.
"""

import gzip
import hashlib
from collections.abc import Mapping
from pathlib import Path
from typing import Final

import msgspec
from aiohttp import web

_DIRECTORY: Final = Path(__file__).parent / "assets"
_TYPES: Final = {
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
}
_FOR_EVER: Final = "public, max-age=31536000, immutable"


class Vendored(msgspec.Struct, frozen=True):
    """A file of others, unchanged."""

    package: str
    """In the registry of npm."""
    version: str
    path: str
    """In that package."""
    sha256: str
    license: str
    """SPDX; its text is in the file `LICENSE.PACKAGE` beside it, with a plus sign for a slash."""


VENDORED: Final[Mapping[str, Vendored]] = {
    "htmx.js": Vendored(
        "htmx.org",
        "4.0.1",
        "dist/htmx.min.js",
        "a0abb04f2f45a1f89d1d4844023245537e5e6014c87b144553e0607b4cc32130",
        "0BSD",
    ),
    "hx-sse.js": Vendored(
        "htmx.org",
        "4.0.1",
        "dist/ext/hx-sse.min.js",
        "18ef2761356ec1fe0bb6d92612315b37517a7c1e9856b661c5ae81fef239d103",
        "0BSD",
    ),
    "uplot.js": Vendored(
        "uplot",
        "1.6.32",
        "dist/uPlot.iife.min.js",
        "19c8d4c6ad88929a79f4ae49d6f7161566dfd0ba3d15cc495e974f787eb78f1f",
        "MIT",
    ),
    "uplot.css": Vendored(
        "uplot",
        "1.6.32",
        "dist/uPlot.min.css",
        "df630c6a8d6f8eeaff264b50f73ce5b114f646ffd9a0bb74f049b0a00135fa04",
        "MIT",
    ),
    "xterm.js": Vendored(
        "@xterm/xterm",
        "6.0.0",
        "lib/xterm.js",
        "14903579ff54664cd72f8e8699e6961a6272c21863ec1c3b118cdc8af5d4a972",
        "MIT",
    ),
    "xterm.css": Vendored(
        "@xterm/xterm",
        "6.0.0",
        "css/xterm.css",
        "854a7c0fb70e8b1a083c16797ab827299fb18744f5ad34f227b48337e33293c6",
        "MIT",
    ),
    "xterm-fit.js": Vendored(
        "@xterm/addon-fit",
        "0.11.0",
        "lib/addon-fit.js",
        "ba3ea256ce0620a0992a197d6c9baea64823fc93d8da07a9e366ca9943c18527",
        "MIT",
    ),
}


class Asset(msgspec.Struct, frozen=True):
    """A file as it is served."""

    path: str
    content_type: str
    data: bytes
    compressed: bytes


class Assets:
    """All of them."""

    def __init__(self, directory: Path = _DIRECTORY) -> None:
        self.by_name: Final = {
            path.name: _asset(path) for path in sorted(directory.iterdir()) if path.suffix in _TYPES
        }
        self.addresses: Final[Mapping[str, str]] = {name: each.path for name, each in self.by_name.items()}
        self._by_path: Final = {each.path: each for each in self.by_name.values()}

    async def serve(self, request: web.Request) -> web.Response:
        """One file, whose address was on a page."""
        asset = self._by_path.get(request.path)
        if asset is None:
            raise web.HTTPNotFound
        packed = "gzip" in request.headers.get("Accept-Encoding", "")
        headers = {
            "Cache-Control": _FOR_EVER,
            "Content-Type": asset.content_type,
            "Vary": "Accept-Encoding",
        }
        if packed:
            headers["Content-Encoding"] = "gzip"
        return web.Response(body=asset.compressed if packed else asset.data, headers=headers)


def _asset(path: Path) -> Asset:
    data = path.read_bytes()
    digest = hashlib.sha256(data).hexdigest()[:12]
    address = f"/assets/{path.stem}.{digest}{path.suffix}"
    return Asset(address, _TYPES[path.suffix], data, gzip.compress(data, mtime=0))
