"""
With which credential a person's program comes to a pool.

The order, and why:

    what the program or KETTLE_NATS_CREDENTIALS names       somebody has decided
    BEARER_TOKEN, BEARER_TOKEN_FILE, bt_u<uid>              the token of this shell or job (WLCG token discovery)
    what kettle login has kept                              the person has signed in
    IDTOKENS of the token directory                         somebody has put them there once, for whatever comes
    the account of this machine                             nothing was said

A token counts if the pool takes those of its issuer: a shell often has tokens that are for somebody else.  Where the pool
takes no tokens at all nothing of this is looked at.
"""

import hashlib
import os
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Final

import msgspec

from kettle.auth.tokens import bearer
from kettle.client.connections.pool_file import PoolFile
from kettle.client.errors import ClientError, CommandRefusedError, PoolNotFoundError

LOGIN: Final = "login:"
"""How the place of a token begins that `kettle login` keeps; the directory and the issuer follow."""
LINE: Final = "line:"
"""How the place of a token begins that is a line of a file; the number of the line and the path follow."""


class CredentialRefusedError(CommandRefusedError):
    """The pool does not take the credential; the text says why, and what to do."""


class _Claims(msgspec.Struct, frozen=True):
    """What a token says of itself: the pool looks whether that is true."""

    iss: str = ""
    kettle_session: object = None
    """`kettle.auth.tokens.verified.JOB_CLAIM`."""


class _Owner(msgspec.Struct, frozen=True):
    """Whom the pool takes somebody for who shows a token."""

    owner: str
    expires: float


class HeldRight(msgspec.Struct, frozen=True):
    """A level that a token gives, and by which of its scopes."""

    level: str
    because: str = ""


class Holder(msgspec.Struct, frozen=True):
    """Whom the pool takes the holder of a token for."""

    subject: str
    identity: str = ""
    method: str = ""
    issuer: str = ""
    levels: list[HeldRight] = []
    scopes: list[str] = []
    expires: float = 0.0


class _Problem(msgspec.Struct, frozen=True):
    code: str = ""
    detail: str = ""


def with_token(
    pool: PoolFile, environ: Mapping[str, str], home: Path, knob: Callable[[str], str | None]
) -> PoolFile:
    """
    The pool as the holder of the first token that counts; the same pool if there is none.

    `home` is the directory of the person's logins, `knob` says what HTCondor's knobs are.

    Raises:
        CredentialRefusedError: the pool does not take the token.
        PoolNotFoundError: there is neither a token nor an account.
    """
    others: list[str] = []
    for place in _places(environ, home, knob):
        issuer = _signed_in_at(place)
        if not issuer or issuer.rstrip("/") in {each.rstrip("/") for each in pool.issuers}:
            token = token_at(place, environ)
            claims = _claims(token)
            issuer = claims.iss
            if issuer in {*pool.issuers, pool.trust_domain}:
                held = msgspec.structs.replace(
                    pool,
                    credentials=pool.sentinel,
                    token=place,
                    by_job=claims.kettle_session is not None,
                )
                return msgspec.structs.replace(held, user=owner_of(held, token, home))
        others.append(f"{shown(place)} has one of {issuer or 'nobody'}")
    if pool.credentials:
        return pool
    looked = f" ({'; '.join(others)})" if others else ""
    raise PoolNotFoundError(
        f"no credential for the pool {pool.pool} was found{looked}: it takes tokens of {', '.join(pool.issuers) or 'nobody'}; sign in "
        "with kettle login --issuer URL, or set BEARER_TOKEN_FILE"
    )


def token_at(place: str, environ: Mapping[str, str]) -> str:
    """The token that is now at a place; raises ClientError."""
    if place.startswith(LOGIN):
        from kettle.client.device_login import TokenFiles

        home = place.removeprefix(LOGIN).rpartition(" ")[0]
        return TokenFiles(Path(home)).fresh(_signed_in_at(place)).access_token
    if place.startswith(LINE):
        number, _, path = place.removeprefix(LINE).partition(":")
        lines = Path(path).read_text(encoding="utf-8", errors="replace").splitlines()
        return lines[int(number)].strip() if int(number) < len(lines) else ""
    try:
        return bearer.read(place, environ)
    except bearer.NoTokenError as error:
        raise ClientError(str(error)) from error


def _places(environ: Mapping[str, str], home: Path, knob: Callable[[str], str | None]) -> Iterator[str]:
    try:
        found = bearer.place(environ, os.geteuid())
    except bearer.NoTokenError as error:
        raise ClientError(str(error)) from error
    if found:
        yield found
    if (home / "logins").is_dir():
        from kettle.client.device_login import TokenFiles

        yield from (f"{LOGIN}{home} {each.issuer}" for each in TokenFiles(home).all())
    yield from _idtokens(knob)


def _idtokens(knob: Callable[[str], str | None]) -> Iterator[str]:
    from kettle.auth.idtokens import token_files
    from kettle.auth.idtokens.places import token_places

    try:
        directory = token_places(knob).tokens
        files = token_files.files(directory)
    except (OSError, RuntimeError):
        return
    for file in files:
        try:
            lines = file.read_text(encoding="utf-8", errors="replace").splitlines()
        except OSError:
            continue
        for number, line in enumerate(lines):
            if line.strip() and not line.strip().startswith("#"):
                yield f"{LINE}{number}:{file}"


def _signed_in_at(place: str) -> str:
    """The issuer of a place that `kettle login` keeps; empty: it is another place."""
    return place.rpartition(" ")[2] if place.startswith(LOGIN) else ""


def _claims(token: str) -> _Claims:
    """Empty ones of what is no token."""
    from base64 import urlsafe_b64decode

    body = token.split(".")[1] if token.count(".") == 2 else ""
    try:
        return msgspec.json.decode(urlsafe_b64decode(body + "=" * (-len(body) % 4)), type=_Claims)
    except (ValueError, msgspec.MsgspecError):
        return _Claims()


def shown(place: str) -> str:
    """How a person is told of a place."""
    if place.startswith(LOGIN):
        return "kettle login"
    named = os.environ.get(place, "") if place == "BEARER_TOKEN_FILE" else ""
    for name, value in os.environ.items():
        if named and name.lower() == "_condor_scitokens_file" and value == named:
            return name  # `heed_token_file` has put it there
    return place.removeprefix(LINE).partition(":")[2] if place.startswith(LINE) else place


def owner_of(pool: PoolFile, token: str, home: Path) -> str:
    """Whom the pool takes the holder of a token for; it is asked once for each token."""
    kept = home / "logins" / f"owner-{hashlib.sha256(token.encode()).hexdigest()[:32]}"
    try:
        known = msgspec.json.decode(kept.read_bytes(), type=_Owner)
        if time.time() < known.expires:
            return known.owner
    except (FileNotFoundError, msgspec.MsgspecError):
        pass
    found = asked(pool, token)
    from kettle.auth.private_files import private_directory, write_private

    private_directory(kept.parent)
    _forget_ended(kept.parent)
    owner = _Owner(found.subject, found.expires or time.time() + 3600.0)
    write_private(kept, msgspec.json.encode(owner).decode())
    return owner.owner


def _forget_ended(directory: Path) -> None:
    """Remove what is known of tokens that have ended."""
    for path in directory.glob("owner-*"):
        if time.time() - path.stat().st_mtime > 7 * 86_400.0:
            path.unlink(missing_ok=True)


def asked(pool: PoolFile, token: str) -> Holder:
    """
    What the pool's iam says of the holder of a token; a refusal says where it comes from, if the pool has it from a place.

    Raises:
        CredentialRefusedError: it does not take it.
        PoolUnreachableError: it does not answer.
    """
    from kettle.client.iam_http import IamAddress, IamHttp, trusting

    iam = IamHttp(IamAddress.of(pool.iam_url), trusting(pool.ca))
    status, body = iam.ask("GET", "/v1/whoami", {}, token)
    if status == 200:
        holder = msgspec.json.decode(body, type=Holder)
        if not holder.levels:
            raise CredentialRefusedError(
                "token.no_rights",
                f"the pool {pool.pool} knows you as {holder.subject}, and lets you do nothing with {_this(pool)}, whose scopes are "
                f"'{' '.join(holder.scopes)[:200]}': ask its issuer for condor:/READ or condor:/WRITE (token.no_rights)",
            )
        return holder
    try:
        problem = msgspec.json.decode(body, type=_Problem)
    except msgspec.MsgspecError:
        problem = _Problem(detail=f"it answers with the status {status}")
    from kettle.auth.tokens.verified import TokenCode

    which = f": {_this(pool)}" if pool.token else ""
    then = "; get a new one: kettle login, kettle token create" if problem.code == TokenCode.EXPIRED else ""
    raise CredentialRefusedError(
        problem.code,
        f"the pool {pool.pool} does not let you in: {problem.detail}{which} ({problem.code}){then}",
    )


def _this(pool: PoolFile) -> str:
    """The token that was shown, as a person is told of it."""
    return f"the token of {shown(pool.token)}" if pool.token else "this token"


def why_refused(pool: PoolFile, token: Callable[[], str]) -> CredentialRefusedError | None:
    """
    Why the pool does not take our token: its bus never says, and its iam does. None: it takes it, or nobody answers.
    """
    if not pool.iam_url:
        return None
    try:
        asked(pool, token())
    except CredentialRefusedError as refused:
        return refused
    except ClientError:
        return None
    return None


def token_of(pool: PoolFile) -> str:
    """The token that the pool is shown now; raises ClientError."""
    return token_at(pool.token, os.environ)
