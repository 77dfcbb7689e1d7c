"""
What support gets: findings, settings, states and the ends of logs in one archive, without secrets.

Only what is listed here is in it, and each text goes through the same filter as the logs of services do: passwords of
URLs, credentials, tokens and keys are not in it even where somebody has written them into a setting of another name.
"""

import io
import json
import os
import platform
import re
import tarfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

import msgspec

from kettle import VERSION
from kettle.auth.private_files import private_directory
from kettle.runtime import SettingsError
from kettle.runtime.setting_types import redact
from kettle_services.cli.configuration.origins import origins
from kettle_services.cli.configuration.outcome import environ_of
from kettle_services.cli.configuration.services import of_host
from kettle_services.cli.doctor.findings import Finding

LOG_BYTES: Final = 256 * 1024
"""Of each log, its end."""
_LEAST: Final = 8
"""What is shorter is no secret, and would be struck out everywhere."""
_LOOKS_SECRET: Final = re.compile(
    r"""
    eyJ[\w-]{8,400}\.[\w-]{4,}\.[\w-]*                      # a token (JWT)
    | \bS[UAOCNX][A-Z2-7]{40,}                              # a seed of NATS
    | \A(?:[A-Za-z0-9+/=]+[ ]*\n)+-----+END[ ][A-Z ]*-----+   # the rest of a key whose beginning is cut off
    | -----BEGIN[ ][A-Z ]*(?:KEY|SEED|JWT)-----.*?(?:-----+END[ ][A-Z ]*-----+|\Z)   # what files of keys have
    | \bkettle-(?:join|token)-\d+\.\S+                      # tokens of a pool
    | (?i:bearer[ ]+|\bauthorization["']?[ ]*[:=][ ]*["']?\w{1,20}[ ]+)\S+
    | (?i:\b(?:set-)?cookie[ ]*:)[^\n"]+
    | (?i:\bpassword[ ]+)'[^']{0,2000}'                    # as SQL has it
    | (?i:
        \b[\w-]{0,64}(?:password|passwd|passphrase|secret|api_?key|private_key|credential|signature|(?<![a-z])token)
        [\w-]{0,64}["']?\s{0,9}[:=]\s{0,9}
      )
      (?:
        "(?:\\.|[^"\\]){0,2000}"
        | '(?:\\.|''|[^'\\]){0,2000}'
        | (?![\[{]|(?:\d+|true|false|null|none)\b)[^\s,;}]+
      )
    """,
    re.VERBOSE | re.DOTALL,
)
_STATES: Final = ("state.json", "off.json")


def filtered(text: str, secrets: Sequence[str] = ()) -> str:
    """A text without what looks like a secret, and without these."""
    for each in secrets:
        text = text.replace(each, "***")
    return _LOOKS_SECRET.sub("***", redact(text))


def write_bundle(home: Path, findings: Sequence[Finding], target: Path) -> list[str]:
    """Write the archive, for its owner alone; the names of what is in it.  Raises OSError."""
    private_directory(target.parent)
    secrets = sorted(_known_secrets(home), key=len, reverse=True)
    fd = os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    try:
        with os.fdopen(fd, "wb") as file, tarfile.open(fileobj=file, mode="w:gz") as archive:
            return [_add(archive, name, filtered(text, secrets)) for name, text in _texts(home, findings)]
    except BaseException:
        target.unlink(missing_ok=True)
        raise


def _add(archive: tarfile.TarFile, name: str, text: str) -> str:
    data = text.encode()
    member = tarfile.TarInfo(f"kettle-support/{name}")
    member.size, member.mtime, member.mode = len(data), int(time.time()), 0o600
    archive.addfile(member, io.BytesIO(data))
    return name


def _texts(home: Path, findings: Sequence[Finding]) -> Iterator[tuple[str, str]]:
    yield "findings.json", _json(findings)
    uname = platform.uname()
    yield (
        "versions.json",
        _json(
            {
                "kettle": VERSION,
                "python": platform.python_version(),
                "kernel": f"{uname.system} {uname.release} {uname.machine}",
                "cpus": os.cpu_count(),
            }
        ),
    )
    try:
        yield "settings.json", _json(list(origins(of_host(environ_of(home), None))))
    except SettingsError as error:
        yield "settings.txt", str(error)
    for name in _STATES:
        if (path := home / name).is_file():
            yield name, path.read_text(encoding="utf-8", errors="replace")
    for path in sorted((home / "log").glob("*.log")):
        yield f"log/{path.name}", _end(path)
    for server in ("postgres/postgres.log", "nats/nats.log"):
        if (path := home / server).is_file():
            yield f"log/{path.name}", _end(path)


def _json(value: object) -> str:
    return msgspec.json.format(msgspec.json.encode(value), indent=2).decode() + "\n"


def _end(path: Path) -> str:
    with path.open("rb") as file:
        size = file.seek(0, os.SEEK_END)
        file.seek(max(0, size - LOG_BYTES))
        text = file.read().decode(errors="replace")
    return text if size <= LOG_BYTES else text.partition("\n")[2]


def _known_secrets(home: Path) -> set[str]:
    """What the pool keeps as a secret: the words of the files of its credentials and keys."""
    found: set[str] = set()
    for top in (home / "credentials", home / "pki", home / "iam", home / "postgres" / "passfiles"):
        for path in top.rglob("*") if top.is_dir() else ():
            if path.is_file() and path.suffix not in {".pem", ".json"}:
                found.update(_words(path))
    passfile = home / "postgres" / "passfile"
    if passfile.is_file():
        found.update(_words(passfile))
    return found


def _words(path: Path) -> Iterator[str]:
    data = path.read_bytes()
    try:
        text = data.decode("ascii")
    except UnicodeDecodeError:
        yield data.hex()
        return
    if text.startswith("{"):
        yield from (
            value for value in json.loads(text).values() if isinstance(value, str) and len(value) >= _LEAST
        )
        return
    for line in text.splitlines():
        word = line.rpartition(":")[2].strip()
        if len(word) >= _LEAST and not word.startswith(("-----", "**")) and " " not in word:
            yield word
