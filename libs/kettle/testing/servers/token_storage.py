"""
A real XRootD for tests that lets nobody in but those with a token of one issuer, which its SciTokens plug-in checks.
"""

import os
import pwd
import shutil
import tempfile
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from ctypes.util import find_library
from pathlib import Path
from typing import Final

import aiohttp
import msgspec

from kettle.testing.servers.files import no_xrootd, serving
from kettle.testing.servers.held_port import held_port

_TRUSTED: Final = Path("/etc/ssl/certs/ca-certificates.crt")
"""What the plug-in's library trusts; it has no setting for it."""
_NAMED: Final = "SciTokens"
_EXPORTED: Final = (
    "XRDADMINPATH", "XRDCONFIGFN", "XRDEXPORTS", "XRDHOST", "XRDINSTANCE", "XRDLCLROOT", "XRDLOGDIR", "XRDNAME", "XRDOFSEVENTS",
    "XRDPORT", "XRDPROG", "XRDREDIRECT", "XRDROLE",
)  # fmt: skip
"""
What an XRootD puts into its environment as it starts, while its plug-in for tokens reads that in a thread of its own. What is there
already is replaced where it stands; otherwise the environment may move while it is read, of which the server died once.
"""


def no_token_storage() -> str:
    """Why there can be none here; empty if there can."""
    if missing := no_xrootd():
        return missing
    if find_library(_NAMED) is None:
        return "there is no XRootD that takes tokens (Debian package xrootd-scitokens-plugins)"
    if os.geteuid() or shutil.which("unshare") is None:
        return "only root can have a server trust an authority that nobody else trusts"
    return ""


class TokenStorage(msgspec.Struct, frozen=True):
    """It at work, over HTTP."""

    url: str
    directory: Path

    async def ask(self, method: str, path: str, token: str = "", data: bytes | None = None) -> int:
        """The status of an answer."""
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        async with (
            aiohttp.ClientSession(headers=headers) as session,
            session.request(method, f"{self.url}{path}", data=data) as answer,
        ):
            await answer.read()
            return answer.status


@contextmanager
def token_storage(
    issuer: str, audience: str, authority: Path, files: Mapping[str, bytes]
) -> Generator[TokenStorage]:
    """
    It with these files, for the tokens of one issuer that are for one audience; `authority`: the certificate by which the
    issuer is known, which no other process comes to trust.
    """
    with tempfile.TemporaryDirectory(prefix="kettle-xrootd-") as name:
        place, port, http = Path(name), held_port(), held_port()
        data = place / "data"
        for part in (data, place / "run", place / "cache"):
            part.mkdir()
        for path, content in files.items():
            file = data / path.lstrip("/")
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(content)
        trusted = place / "trusted.pem"
        trusted.write_bytes(_TRUSTED.read_bytes() + authority.read_bytes())
        (place / "tokens.cfg").write_text(
            f"[Global]\naudience = {audience}\nonmissing = deny\n\n[Issuer pool]\nissuer = {issuer}\nbase_path = /\n"
        )
        (place / "server.cfg").write_text(
            f"all.export /\nxrd.port {port}\nall.adminpath {place}/run\nall.pidpath {place}/run\noss.localroot {data}\n"
            f"xrd.protocol http:{http} libXrdHttp.so\nhttp.header2cgi Authorization authz\n"
            f"ofs.authorize\nofs.authlib libXrdAccSciTokens.so config={place}/tokens.cfg\n"
        )
        account = pwd.getpwnam("xrootd")
        for each in (place, *place.rglob("*")):
            os.chown(each, account.pw_uid, account.pw_gid)
        server = [
            *("setpriv", f"--reuid={account.pw_uid}", f"--regid={account.pw_gid}", "--clear-groups"),
            *("xrootd", "-c", str(place / "server.cfg"), "-l", str(place / "run" / "log"), "-n", "tokens"),
        ]
        hidden = ["unshare", "--mount", "sh", "-c", 'mount --bind "$0" "$1" && shift && exec "$@"']
        command = [*hidden, str(trusted), str(_TRUSTED), *server]
        environ = {
            **os.environ,
            **dict.fromkeys(_EXPORTED, ""),
            "XDG_CACHE_HOME": str(place / "cache"),
            "HOME": str(place),
        }
        with serving(command, http, environ=environ):
            yield TokenStorage(f"http://127.0.0.1:{http}", data)
