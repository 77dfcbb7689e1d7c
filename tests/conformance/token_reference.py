"""
What other implementations make of tokens: libSciTokens of HTCondor's wheel, and the Python package `scitokens`.

    python -m tests.conformance.token_reference < question.json > answer.json

It is a program of its own because a library in C may end its process, and keeps its keys in files. No network is used:
the keys are put into the caches of both before they are asked.
"""

import ctypes
import json
import sys
import tempfile
from collections.abc import Generator
from contextlib import contextmanager
from importlib import import_module
from importlib.metadata import PackageNotFoundError, files
from pathlib import Path

import jwt
import msgspec
from joserfc.jwk import ECKey, RSAKey

_LEVELS = ("READ", "WRITE", "ADMINISTRATOR", "DAEMON", "NEGOTIATOR", "ADVERTISE_STARTD")
"""What the package is asked about, which tells only yes or no.  The library lists what it grants."""


class Acl(ctypes.Structure):
    """One right of libSciTokens."""

    _fields_ = (("authz", ctypes.c_char_p), ("resource", ctypes.c_char_p))


def library() -> Path | None:
    """The file of libSciTokens in this environment."""
    try:
        found = files("htcondor") or []
    except PackageNotFoundError:
        return None
    return next((Path(str(each.locate())) for each in found if each.name.startswith("libSciTokens")), None)


class LibSciTokens:
    """The library in C++, through its interface for C."""

    def __init__(self, path: Path, home: Path) -> None:
        # The library finds those that it needs beside it only if the module of HTCondor has loaded them.
        __import__("htcondor2")
        self._c = ctypes.CDLL(str(path))
        pointer, text = ctypes.c_void_p, ctypes.c_char_p
        self._c.enforcer_create.restype = pointer
        self._c.enforcer_create.argtypes = [text, ctypes.POINTER(text), ctypes.POINTER(text)]
        self._c.enforcer_generate_acls.argtypes = [
            pointer,
            pointer,
            ctypes.POINTER(ctypes.POINTER(Acl)),
            ctypes.POINTER(text),
        ]
        self._c.enforcer_acl_free.argtypes = [ctypes.POINTER(Acl)]
        self._c.enforcer_destroy.argtypes = self._c.scitoken_destroy.argtypes = [pointer]
        self._ask("scitoken_config_set_str", b"keycache.cache_home", str(home).encode())

    def set_keys(self, issuer: str, jwks: str) -> None:
        """What the issuer would publish."""
        self._ask("keycache_set_jwks", issuer.encode(), jwks.encode())

    def rights(self, issuer: str, token: str, audience: str) -> list[str] | str:
        """What the token allows, or why it is refused."""
        told, made = ctypes.c_char_p(), ctypes.c_void_p()
        if self._c.scitoken_deserialize(token.encode(), ctypes.byref(made), None, ctypes.byref(told)):
            return (told.value or b"").decode()
        audiences = (ctypes.c_char_p * 2)(audience.encode(), None)
        enforcer = self._c.enforcer_create(issuer.encode(), audiences, ctypes.byref(told))
        try:
            found = ctypes.POINTER(Acl)()
            if self._c.enforcer_generate_acls(enforcer, made, ctypes.byref(found), ctypes.byref(told)):
                return (told.value or b"").decode()
            rights: list[str] = []
            while found[len(rights)].authz:
                right = found[len(rights)]
                rights.append(f"{right.authz.decode()}:{right.resource.decode()}")
            self._c.enforcer_acl_free(found)
            return rights
        finally:
            self._c.enforcer_destroy(enforcer)
            self._c.scitoken_destroy(made)

    def _ask(self, function: str, *given: bytes) -> None:
        told = ctypes.c_char_p()
        if getattr(self._c, function)(*given, ctypes.byref(told)):
            raise RuntimeError(f"{function}: {told.value!r}")


class Package:
    """The package in Python, which knows SciTokens only."""

    def __init__(self) -> None:
        self._package = import_module("scitokens")  # it has no types
        self._keys: dict[str, dict[str, bytes]] = {}

    def set_keys(self, issuer: str, jwks: str) -> None:
        """
        What the issuer would publish; the first of several keys of one name, as the package looks for them.
        """
        found = self._keys.setdefault(issuer, {})
        for key in json.loads(jwks)["keys"]:
            found.setdefault(key["kid"], _pem(key))

    def rights(self, issuer: str, token: str, audience: str) -> list[str] | str:
        """What the token allows, or why it is refused."""
        try:
            pem = self._keys[issuer].get(jwt.get_unverified_header(token).get("kid", ""))
            if pem is None:
                return "unknown key"
            found = self._package.SciToken.deserialize(token, public_key=pem)
        except jwt.PyJWTError as error:
            return f"{type(error).__name__}: {error}"
        enforcer = self._package.Enforcer(issuer, audience)
        granted = [level for level in _LEVELS if enforcer.test(found, "condor", f"/{level}")]
        return [f"condor:/{level}" for level in granted]


def _pem(jwk: dict[str, str]) -> bytes:
    key = ECKey.import_key(dict(jwk)) if jwk["kty"] == "EC" else RSAKey.import_key(dict(jwk))
    return key.as_pem(private=False)


class Question(msgspec.Struct):
    """What is asked."""

    issuers: dict[str, dict[str, object]]
    """The keys that each publishes."""
    audience: str
    """What the one who asks is called."""
    tokens: list[tuple[str, str]]
    """The issuer and the token of each."""


def answers(implementation: LibSciTokens | Package, question: Question) -> list[list[str] | str]:
    """Of one implementation, in the order of the tokens."""
    return [implementation.rights(issuer, token, question.audience) for issuer, token in question.tokens]


@contextmanager
def implementations() -> Generator[dict[str, LibSciTokens | Package]]:
    """Those that are installed."""
    with tempfile.TemporaryDirectory(prefix="tokens-") as home:
        found: dict[str, LibSciTokens | Package] = {"scitokens": Package()}
        path = library()
        if path is not None:
            found["libSciTokens"] = LibSciTokens(path, Path(home))
        yield found


def main() -> None:
    question = msgspec.json.decode(sys.stdin.buffer.read(), type=Question)
    with implementations() as asked:
        for issuer, jwks in question.issuers.items():
            for each in asked.values():
                each.set_keys(issuer, json.dumps(jwks))
        json.dump({name: answers(each, question) for name, each in asked.items()}, sys.stdout)


if __name__ == "__main__":
    main()
