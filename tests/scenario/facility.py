"""
A pool as an analysis facility has it, and people of it who have a token and HTCondor's seven variables, and nothing else.
"""

import os
import sys
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path

import msgspec
from tests.integration.iam.issuer import TokenIssuer, token_issuer

from kettle.auth.private_files import private_directory
from kettle.pki.authority_files import AuthorityFiles
from kettle.pool.personal_settings import Tables
from kettle.testing.commands.running import Said, execute, run
from kettle.testing.throwaway_pool import ThrowawayPool, merged, throwaway_pool

SERVICES = ["collector", "negotiator", "schedd", "shadow", "accounting", "iam"]
AUDIENCE = "https://pool.example"
SITES = ("T2_Here", "T2_There")
"""What the machines of the pool say of themselves, the first one by its settings."""
RULES = """
[[rules]]
when.issuer = "{issuer}"
when.subject = '/^([a-z]+)$/'
owner = '\\1'
"""
_OF_A_POOL = ("KETTLE_", "_CONDOR_", "BEARER_TOKEN")


class Facility:
    """The pool, whose bus and iam are encrypted, and the issuer of its people's tokens."""

    def __init__(
        self, pool: ThrowawayPool, issuer: TokenIssuer, ca: Path, place: Path, programs: Path
    ) -> None:
        """
        `ca`: the certificate of the site's authority; `place`: the directory of the condor_* commands; `programs`: what comes
        first on the PATH of jobs.
        """
        self.programs = programs
        self.pool = pool
        self.issuer = issuer
        self.ca = ca
        self.place = place

    def variables(self, token: Path | str, *, ca: Path | str | None = None) -> dict[str, str]:
        """The seven, as a facility's image has them; `token` and `ca` are paths."""
        port = (self.pool.home / "iam" / "port").read_text()
        return {
            "_condor_COLLECTOR_HOST": f"https://127.0.0.1:{port}",
            "_condor_SCHEDD_HOST": "schedd",
            "_condor_SCHEDD_NAME": "schedd",
            "_condor_SCITOKENS_FILE": str(token),
            "_condor_AUTH_SSL_CLIENT_CAFILE": str(ca or self.ca),
            "_condor_SEC_DEFAULT_AUTHENTICATION_METHODS": "SCITOKENS",
            "_condor_TOOL_DEBUG": "D_FULLDEBUG,D_SECURITY",
        }

    def has_python(self, python: str) -> None:
        """Have jobs find this one as `python3`, as they find that of the facility's image."""
        script = self.programs / "python3"
        script.write_text(f'#!/bin/sh\nexec {python} "$@"\n')
        script.chmod(0o755)

    def person(self, home: Path, name: str, **claims: object) -> "Person":
        """Somebody whom the issuer has given a token, with an empty home directory."""
        home.mkdir(exist_ok=True)
        token = home / "token"
        token.write_text(self.issuer.token(name, AUDIENCE, **claims))
        return Person(self, home, token)


class Person:
    """Who has a token in a file, and a home directory in which nothing else is."""

    def __init__(self, facility: Facility, home: Path, token: Path) -> None:
        self.home = home
        self.token = token
        self.facility = facility
        inherited = {
            name: value for name, value in os.environ.items() if not name.upper().startswith(_OF_A_POOL)
        }
        self.environ: dict[str, str] = {
            **inherited,
            "HOME": str(home),
            "PATH": f"{facility.place}:/usr/bin:/bin",
            **facility.variables(token),
        }

    async def __call__(self, command: str, *words: str, typed: str = "") -> Said:
        """Run one of the condor_* commands in the home directory."""
        return await run([str(self.facility.place / command), *words], self.home, self.environ, typed)

    async def submitted(self, description: str, *words: str) -> int:
        """Submit; the number of the cluster."""
        said = await self("condor_submit", "-terse", *words, typed=description)
        assert (0, "") == (said.status, said.err), said
        return int(said.out.partition(".")[0])

    async def drives(self, script: Path, *words: str, python: str = sys.executable, within_s: float) -> Said:
        """Run a script of tests/acceptance, which gets the directory of the commands."""
        program: Sequence[str] = [python, str(script), str(self.facility.place), *words]
        return await execute(program, self.home, self.environ, within_s=within_s)


@asynccontextmanager
async def facility(
    directory: Path, place: Path, *, template: Path, cpus: int = 8, settings: Tables | None = None
) -> AsyncGenerator[Facility]:
    """One for some tests, with a machine at each of `SITES`, on which jobs find the condor_* commands."""
    authority = AuthorityFiles(directory / "pki")
    ca = authority.make("Facility", now=datetime.now(UTC)).certificate
    authority.issue(["127.0.0.1"], "server", now=datetime.now(UTC))
    certificate, key = (str(directory / "pki" / f"127.0.0.1.{kind}") for kind in ("pem", "key"))
    async with token_issuer() as issuer:
        rules = directory / "rules.toml"
        rules.write_text(RULES.replace("{issuer}", issuer.url))
        programs = directory / "programs"
        programs.mkdir()
        there = {
            "KETTLE_HOME": str(private_directory(directory / "there")),
            "KETTLE_CONFIG": str(directory / "pool" / "kettle.toml"),
            "KETTLE_STARTD_ATTRIBUTES": msgspec.json.encode({"SiteName": SITES[1]}).decode(),
        }
        own: Tables = {
            "kettle": {"nats_ca": str(ca)},
            "master": {
                "daemon_list": [*SERVICES, "startd.here", "startd.there"],
                "environment": {"startd.there": there},
                "nats_certificate": certificate,
                "nats_key": key,
            },
            "authorization": {"domain": "pool.example", "rules": str(rules)},
            "iam": {
                "certificate": certificate,
                "certificate_key": key,
                "ca_certificate": str(ca),
                "issuers": {issuer.url: [AUDIENCE]},
            },
            "startd": {
                "job_account": "own",
                "local_jobs": False,
                "attributes": {"SiteName": SITES[0]},
                "job_environment": {"PATH": f"{programs}:{place}:/usr/local/bin:/usr/bin:/bin"},
            },
        }
        tables = merged(own, settings or {})
        home = directory / "pool"
        async with throwaway_pool(
            directory, cpus=cpus, settings=tables, template=template, home=home
        ) as pool:
            yield Facility(pool, issuer, Path(ca), place, programs)
            assert [] == pool.left
