"""What infra/kubernetes describes is valid, closed, and gives each service what its permissions are for."""

import shutil
import subprocess
from collections.abc import Iterator
from datetime import UTC, datetime
from importlib import import_module
from pathlib import Path
from typing import Any, Final

import pytest

from kettle.pool import joined_files
from kettle.pool.container_files import DATABASE_ROLES, SERVICES, ContainerPool, make
from kettle.pool.container_secrets import GIVEN

kubernetes_validate: Any = import_module("kubernetes_validate")  # neither has types
yaml: Any = import_module("yaml")

RECORD: Final = joined_files._RECORD  # pyright: ignore[reportPrivateUsage]
OVERLAYS: Final = ("personal", "site", "ha", "workers", "ce", "af")
OLDEST, NEWEST = "1.25", "1.37"
ONCE: Final = {"database"}
WITHOUT_SECRETS: Final = {"worker", "xcache"}
OF_THE_SITE: Final = {"kettle-join-token", "kettle-hub"}
"""Secrets that no command makes with the files of the pool."""
KINDS: Final = {"Deployment", "StatefulSet", "DaemonSet", "Job"}


def objects(top: Path) -> Iterator[dict[str, Any]]:
    for path in sorted((top / "infra/kubernetes").rglob("*.yaml")):
        if path.name != "kustomization.yaml":
            yield from (each for each in yaml.safe_load_all(path.read_text()) if each)


@pytest.fixture(scope="module")
def found(top: Path) -> list[dict[str, Any]]:
    return list(objects(top))


@pytest.fixture(scope="module")
def pods(found: list[dict[str, Any]]) -> dict[str, dict[str, Any]]:
    """The templates of pods by name."""
    return {each["metadata"]["name"]: each["spec"]["template"] for each in found if each["kind"] in KINDS}


@pytest.mark.parametrize("version", [OLDEST, NEWEST])
def test_kubernetes_knows_every_field(found: list[dict[str, Any]], version: str) -> None:
    """No field is misspelt, in the oldest and the newest version of which there is a schema."""
    for each in found:
        kubernetes_validate.validate(each, version, strict=True)


def test_pods_are_restricted(pods: dict[str, dict[str, Any]]) -> None:
    """
    What the standard of that name asks for, a root that cannot be written, no account of the cluster, and ends of memory.
    """
    for name, template in pods.items():
        spec = template["spec"]
        assert spec["automountServiceAccountToken"] is False, name
        assert spec["securityContext"]["runAsNonRoot"] is True, name
        assert {"type": "RuntimeDefault"} == spec["securityContext"]["seccompProfile"], name
        assert [] == [volume for volume in spec["volumes"] if "hostPath" in volume], name
        for container in (*spec.get("initContainers", []), *spec["containers"]):
            closed = container["securityContext"]
            assert (False, ["ALL"], True) == (
                closed["allowPrivilegeEscalation"],
                closed["capabilities"]["drop"],
                closed["readOnlyRootFilesystem"],
            )
            assert container["resources"]["limits"]["memory"], name
            assert container["resources"]["requests"]["cpu"], name


def test_containers_are_watched(pods: dict[str, dict[str, Any]]) -> None:
    """
    Each has all three probes, and none is ended because of a server that is away: liveness asks the process alone.
    """
    for name, template in pods.items():
        for container in template["spec"]["containers"]:
            if name in ONCE:
                continue
            assert {"startupProbe", "readinessProbe", "livenessProbe"} <= container.keys(), name
            assert "--ready" not in str(container["livenessProbe"]), name


def test_containers_of_one_pod_have_ports_of_their_own(pods: dict[str, dict[str, Any]]) -> None:
    """They share the loopback interface: each is asked for its health at its own port."""
    for name, template in pods.items():
        said = [
            variable["value"]
            for container in template["spec"]["containers"]
            for variable in container.get("env", [])
            if variable["name"] == "KETTLE_HEALTH_PORT"
        ]
        assert len(said) == len(set(said)), name
        for container, port in zip(template["spec"]["containers"], said, strict=False):
            asked = container["livenessProbe"].get("exec", {}).get("command", [])
            assert (["kettle", "health"] if port == "9640" else ["kettle", "health", "--port", port]) == asked


def test_who_may_speak_with_whom_follows_from_credentials(pods: dict[str, dict[str, Any]]) -> None:
    """
    Who has a credential for the bus reaches it, who has a role of the database reaches that, and nobody else does; what has neither
    label is closed in by the policy for everybody.
    """
    for name, template in pods.items():
        labels = template["metadata"]["labels"]
        roles = {container["name"] for container in template["spec"]["containers"]} & set(SERVICES)
        bus = bool(roles) or name == "worker"
        database = bool(roles & set(DATABASE_ROLES)) or name == "database"
        assert (bus, database) == ("kettle/bus" in labels, "kettle/database" in labels), name


def test_policies_begin_with_nobody(found: list[dict[str, Any]]) -> None:
    """Both directions are closed for all pods, and what is open names the label or the port."""
    policies = {each["metadata"]["name"]: each["spec"] for each in found if each["kind"] == "NetworkPolicy"}
    assert {"podSelector": {}, "policyTypes": ["Ingress", "Egress"]} == policies["nobody"]
    (bus, routes) = policies["bus"]["ingress"]
    assert [{"podSelector": {"matchLabels": {"kettle/bus": "true"}}}] == bus["from"]
    assert [4222] == [port["port"] for port in bus["ports"]]
    assert [6222] == [port["port"] for port in routes["ports"]]
    reached = {
        name for name, spec in policies.items() if any("from" not in rule for rule in spec.get("ingress", []))
    }
    assert {"gateway", "hub", "iam"} == reached


def test_each_container_has_its_own_secret(pods: dict[str, dict[str, Any]]) -> None:
    """Its Secret is named after it, and two containers of one pod do not see each other's."""
    for name, template in pods.items():
        volumes = {
            volume["name"]: volume.get("secret", {}).get("secretName")
            for volume in template["spec"]["volumes"]
        }
        for container in template["spec"]["containers"]:
            given = [
                volumes[mount["name"]] for mount in container["volumeMounts"] if volumes.get(mount["name"])
            ]
            wanted = [f"kettle-{container['name']}"] if container["name"] not in WITHOUT_SECRETS else []
            assert wanted == given, name


def test_the_token_that_machines_join_with_is_where_no_job_runs(pods: dict[str, dict[str, Any]]) -> None:
    """
    Jobs have the account of their machine, so what it can read they can: a container that ends before it begins has joined.
    """
    spec = pods["worker"]["spec"]
    (token,) = (volume["name"] for volume in spec["volumes"] if "secret" in volume)
    (join,), (worker,) = spec["initContainers"], spec["containers"]
    assert token in [mount["name"] for mount in join["volumeMounts"]]
    assert token not in [mount["name"] for mount in worker["volumeMounts"]]
    assert f"/var/lib/kettle/credentials/{RECORD} " in join["command"][-1]
    assert "kettle-join-token" not in str([pod for name, pod in pods.items() if name != "worker"])


def test_the_state_of_the_bus_is_told_in_its_container(
    pods: dict[str, dict[str, Any]], tmp_path: Path
) -> None:
    """Names of people and consumers are no business of who reaches its port, and probes are made within."""
    make(ContainerPool(pool="demo"), tmp_path, now=datetime(2026, 11, 26, tzinfo=UTC))
    assert 'http: "127.0.0.1:8222"' in (tmp_path / "bus/nats.conf").read_text()
    (nats,) = pods["nats"]["spec"]["containers"]
    for probe in ("startupProbe", "readinessProbe", "livenessProbe"):
        assert "http://127.0.0.1:8222/healthz" in nats[probe]["exec"]["command"][-1]


def test_replaced_one_after_the_other(found: list[dict[str, Any]]) -> None:
    """
    Two of each deciding service: a new one stands by before an old one ends; servers of NATS start together.
    """
    by_name = {each["metadata"]["name"]: each["spec"] for each in found if each["kind"] in KINDS}
    for name in ("collector", "negotiator", "scaler"):
        assert 2 == by_name[name]["replicas"]
        assert {"maxSurge": 1, "maxUnavailable": 0} == by_name[name]["strategy"]["rollingUpdate"]
    assert "Parallel" == by_name["nats"]["podManagementPolicy"]
    budgets = {
        each["metadata"]["name"]: each["spec"]["maxUnavailable"]
        for each in found
        if each["kind"] == "PodDisruptionBudget"
    }
    assert dict.fromkeys(("collector", "nats", "negotiator", "scaler"), 1) == budgets


def test_compose_gives_the_same_secrets(top: Path) -> None:
    """Both ways to run containers give each service the same files."""
    for name in ("compose.yaml", "compose.facility.yaml"):
        services = yaml.safe_load((top / "infra/compose" / name).read_text())["services"]
        for role in services.keys() & GIVEN.keys():
            assert set(GIVEN[role]) == set(services[role]["secrets"]), role


def test_overlays_are_rendered_with_what_a_pool_has(top: Path, tmp_path: Path) -> None:
    """
    The files of `kettle site containers` are put in: each reference to a Secret becomes that of its content, so that another
    content starts the pod again.
    """
    kubectl = shutil.which("kubectl")
    if kubectl is None:
        pytest.skip("kubectl is not installed")
    make(ContainerPool(pool="demo"), tmp_path / "pool", now=datetime(2026, 11, 26, tzinfo=UTC))
    shutil.copytree(top / "infra/kubernetes", tmp_path / "kubernetes")
    for overlay in OVERLAYS:
        place = tmp_path / overlay
        place.mkdir()
        (place / "kustomization.yaml").write_text(
            f"namespace: kettle\nresources: [../kubernetes/overlays/{overlay}, ../pool]\n"
        )
        done = subprocess.run(
            [kubectl, "kustomize", str(place)], capture_output=True, text=True, timeout=60, check=False
        )
        assert 0 == done.returncode, done.stderr
        rendered = list(yaml.safe_load_all(done.stdout))
        there = {each["metadata"]["name"] for each in rendered if each["kind"] == "Secret"}
        for each in rendered:
            if each["kind"] in KINDS:
                named = [
                    volume["secret"]["secretName"]
                    for volume in each["spec"]["template"]["spec"]["volumes"]
                    if "secret" in volume
                ]
                assert set(named) - OF_THE_SITE <= there, (overlay, each["metadata"]["name"])
