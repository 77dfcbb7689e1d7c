"""
What infra/ says about images and the compose files is true of the tree, and keeps to the rules of the house.
"""

import re
import shutil
import subprocess
import tomllib
from importlib import import_module
from pathlib import Path
from typing import Any, Final

import pytest

from kettle.pool.container_files import DATABASE_ROLES, SERVICES

yaml: Any = import_module("yaml")  # it has no types

ONCE: Final = {"volumes", "database", "join-token", "client", "acceptance"}
"""What ends by itself."""
OTHERS: Final = {"nats", "postgres", "worker", "prometheus", "alertmanager", "node-exporter", "hub", "xcache"}
LAYERS: Final = ("compose.yaml", "compose.observability.yaml", "compose.facility.yaml", "compose.tests.yaml")


def layer(top: Path, name: str) -> dict[str, Any]:
    found: dict[str, Any] = yaml.safe_load((top / "infra/compose" / name).read_text())
    return found


def merged(top: Path) -> dict[str, Any]:
    """The services of all layers, as an engine would have them of the core and one more each."""
    services: dict[str, Any] = {}
    for name in LAYERS:
        for service, said in layer(top, name)["services"].items():
            before = services.get(service, {})
            secrets = [*before.get("secrets", []), *said.get("secrets", [])]
            services[service] = {**before, **said, "secrets": secrets}
    return services


def test_compose_runs_only_roles_that_exist(top: Path) -> None:
    """Each service beside the servers is one role, named like it and run as it."""
    roles = merged(top).keys() - ONCE - OTHERS
    assert {"schedd", "collector", "gateway", "sessions"} <= roles
    for role in sorted(roles):
        assert (top / "services/kettle_services" / role / "__main__.py").exists(), role
        assert merged(top)[role]["command"] == [role]


def test_compose_needs_no_master(top: Path) -> None:
    """A container engine starts and watches the services itself, and starters belong to their startd."""
    assert set() == merged(top).keys() & {"master", "starter", "startd"}


def test_every_service_is_watched_and_limited(top: Path) -> None:
    """
    It has a health check, ends of memory, processor and processes, is started again, and can neither change its image nor gain a right.
    """
    for name, service in merged(top).items():
        watched = (
            {"disable": True} == service["healthcheck"] if name in ONCE else service["healthcheck"]["test"]
        )
        assert watched, name
        assert {"cpus", "mem_limit", "pids_limit", "restart"} <= service.keys(), name
        assert service["restart"] == "unless-stopped" or name in ONCE, name
        assert True is service["read_only"], name
        assert ["ALL"] == service["cap_drop"], name
        assert "no-new-privileges:true" in service["security_opt"], name


def test_nothing_but_gateway_and_hub_is_reached_from_outside(top: Path) -> None:
    """And these on the machine's own address, unless they are told another."""
    published = {name: service["ports"] for name, service in merged(top).items() if service.get("ports")}
    assert ["gateway", "hub"] == sorted(published)
    for name, (port,) in published.items():
        assert port.startswith(f"${{KETTLE_{name.upper()}_ADDRESS:-127.0.0.1}}:")


def test_the_database_is_reached_by_those_who_have_a_role_of_it(top: Path) -> None:
    """The others are not on its network, and have no password."""
    for name, service in merged(top).items():
        has = any(secret.endswith(".database") for secret in service.get("secrets", []))
        if name in SERVICES:
            assert has == (name in DATABASE_ROLES), name
            assert ("database" in service["networks"]) == has, name


def test_jobs_reach_nothing_that_believes_everybody(top: Path) -> None:
    """
    A job has the account and the networks of its machine: there are the services, which ask for credentials, and NATS, whose
    state is told within its container; and the token that others join with is good for no longer than a start takes.
    """
    services = merged(top)
    near = {
        name
        for name, each in services.items()
        if {*each.get("networks", [])} & {*services["worker"]["networks"]}
    }
    # A hub asks for the token of its servers, and the cache serves all who read, and writes for nobody.
    assert {"nats", "prometheus", "hub", "xcache"} == near & OTHERS - {"worker"}
    assert all(
        line.endswith(" r/o")
        for line in (top / "infra/kubernetes/overlays/af/xcache.cfg").read_text().splitlines()
        if line.startswith("all.export")
    )
    assert "--web.listen-address=127.0.0.1:9090" in services["prometheus"]["command"]
    said = services["join-token"]["entrypoint"]
    assert ["--lifetime", "1h", "--into", "/run/join/token"] == said[-4:]


def test_secrets_are_files_and_each_service_has_its_own(top: Path) -> None:
    """No variable holds one, and nobody is given the credential of another service."""
    known = set(layer(top, "compose.yaml")["secrets"])
    for name in LAYERS:
        known |= set(layer(top, name).get("secrets", {}))
    for name, service in merged(top).items():
        environment: dict[str, str] = service.get("environment") or {}
        for variable, value in environment.items():
            assert not re.search(r"(?i)password|secret|token|seed", variable) or str(value).startswith(
                "/run/secrets/"
            ), name
            assert not re.search(r"://[^/]*:[^/]*@", str(value)), name
        secrets = service.get("secrets", [])
        assert set(secrets) <= known, name
        if name in SERVICES:
            credentials = [
                secret for secret in secrets if secret.endswith(".creds") and secret != "sentinel.creds"
            ]
            assert [f"{name}.creds"] == credentials, name


def test_the_hub_has_the_settings_that_it_reads(top: Path) -> None:
    """
    What its configuration needs is in the file that a site copies, and each of its secrets is one that it is given.
    """
    text = (top / "infra/images/jupyterhub_config.py").read_text()
    needed = set(re.findall(r'SETTINGS\["(\w+)"\]', text))
    assert needed <= tomllib.loads((top / "infra/kubernetes/overlays/af/hub.toml").read_text()).keys()
    read = set(re.findall(r'secret\("([\w.]+)"\)', text)) | set(re.findall(r"/run/secrets/([\w.]+)", text))
    assert read == set(layer(top, "compose.facility.yaml")["services"]["hub"]["secrets"])


def test_docker_compose_reads_them(top: Path) -> None:
    """The oldest docker-compose that is in use finds nothing in them that it does not know."""
    program = shutil.which("docker-compose")
    if program is None:
        pytest.skip("docker-compose is not installed (Debian: docker-compose)")
    files = [word for name in LAYERS for word in ("-f", f"infra/compose/{name}")]
    done = subprocess.run(
        [program, *files, "config", "-q"], cwd=top, capture_output=True, text=True, timeout=60, check=False
    )
    assert (0, "") == (done.returncode, done.stderr)


def test_the_image_copies_what_exists(top: Path) -> None:
    """Every file that the image is built from is in the repository, and is sent to the builder."""
    text = (top / "infra/images/Dockerfile").read_text()
    copies = [words.split()[:-1] for words in re.findall(r"^COPY (?!--from)(.*)$", text, re.MULTILINE)]
    sources = [source for words in copies for source in words]
    sent = {
        line.removeprefix("!")
        for line in (top / ".dockerignore").read_text().splitlines()
        if line.startswith("!")
    }
    assert sources
    assert [] == [source for source in sources if not (top / source).exists()]
    assert sent == set(sources)


def test_the_images_are_as_closed_as_they_say(top: Path, pyproject: dict[str, Any]) -> None:
    """
    Both have the version of the package, a number as their user, a check of health, and begin without a shell.
    """
    text = (top / "infra/images/Dockerfile").read_text()
    common, *images = re.split(r"^FROM ", text, flags=re.MULTILINE)[2:]
    assert ["${BASE} AS common", "common AS services", "common AS worker"] == [
        stage.splitlines()[0] for stage in (common, *images)
    ]
    assert f"ARG VERSION={pyproject['project']['version']}\n" in common
    assert "\nSTOPSIGNAL SIGTERM\n" in common
    assert 'CMD ["kettle", "health"]' in common
    for stage in (common, *images):
        users = re.findall(r"^USER (.*)$", stage, re.MULTILINE)
        assert users[-1:] in ([], ["9618:9618"])
    assert re.search(r"^USER 9618:9618$", common, re.MULTILINE)
    for stage in images:
        assert re.search(r'^ENTRYPOINT \["kettle", ', stage, re.MULTILINE)
    assert "latest" not in text
