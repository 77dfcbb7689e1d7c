"""What infra/ says about the tree is true."""

import ast
import re
from pathlib import Path

SERVERS = {"nats", "postgres"}


def compose_services(top: Path) -> dict[str, str]:
    """Name to text of each entry under `services:`; the file keeps to two spaces."""
    text = (top / "infra/compose/compose.yaml").read_text()
    block = re.search(r"^services:\n(.*?)(?=^\S|\Z)", text, re.MULTILINE | re.DOTALL)
    assert block, "no services in compose.yaml"
    parts = re.split(r"^  ([a-z0-9-]+):\n", block[1], flags=re.MULTILINE)
    return dict(zip(parts[1::2], parts[2::2], strict=True))


def test_compose_runs_only_roles_that_exist(top: Path) -> None:
    """Each service beside the servers is one role, named like it and run as it."""
    services = compose_services(top)
    roles = services.keys() - SERVERS
    assert services.keys() > SERVERS
    for role in sorted(roles):
        assert (top / "services/kettle_services" / role / "__main__.py").exists(), role
        assert f'command: ["{role}"]' in services[role]


def test_compose_needs_no_master(top: Path) -> None:
    """A container engine starts and watches the services itself, and starters belong to their startd."""
    assert set() == compose_services(top).keys() & {"master", "starter"}


def test_the_image_copies_what_exists(top: Path) -> None:
    """Every file that the image is built from is in the repository."""
    text = (top / "infra/images/Dockerfile").read_text()
    copies = [words.split()[:-1] for words in re.findall(r"^COPY (?!--from)(.*)$", text, re.MULTILINE)]
    sources = [source for words in copies for source in words]
    assert sources
    assert [] == [source for source in sources if not (top / source).exists()]


def test_the_image_runs_roles(top: Path) -> None:
    """The arguments of a container are those of `kettle run`."""
    assert 'ENTRYPOINT ["kettle", "run"]' in (top / "infra/images/Dockerfile").read_text()


def test_the_tiltfile_reads_and_leads_somewhere(top: Path) -> None:
    """The Tiltfile parses, and every path in it exists."""
    tree = ast.parse((top / "Tiltfile").read_text())
    strings = [n.value for n in ast.walk(tree) if isinstance(n, ast.Constant) and isinstance(n.value, str)]
    paths = [text for text in strings if "/" in text]
    assert {"infra/images/Dockerfile", "infra/compose/compose.yaml"} == set(paths)
    assert [] == [path for path in paths if not (top / path).exists()]


def test_the_bus_takes_a_whole_frame(top: Path) -> None:
    """The NATS server of the compose file takes messages as large as the embedded one does."""
    assert "../nats/nats.conf:/etc/nats/nats.conf:ro" in (top / "infra/compose/compose.yaml").read_text()
    assert re.search(r"^max_payload: 8MB\b", (top / "infra/nats/nats.conf").read_text(), re.MULTILINE)
