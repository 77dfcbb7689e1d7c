"""Pods of an API server whose every object is held to the schemas of the real one."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import msgspec
import pytest
from tests.conformance.providers.fault_proxy import (
    Answer,
    FaultProxy,
    answered,
    fault_proxy,
    lost_answers,
)
from tests.conformance.providers.kubernetes_api import (
    NAMESPACE,
    TOKEN,
    KubernetesApi,
    kubernetes_api,
)
from tests.conformance.providers.suite import (
    ProviderSuite,
    World,
    bootstrap,
    gone,
    order,
    stand_in,
)

from kettle_services.provisioner.port import InDoubtError, ProviderError, Room
from kettle_services.provisioner.providers.kubernetes import Kubernetes, KubernetesSettings
from kettle_wire.leases import ErrorClass, MachineState
from kettle_wire.worker_pools import Offer

_OFFER = Offer(
    name="pod", provider="cluster", template="registry.example/worker:1", cpus=2, memory=1000, disk=10_000
)


@pytest.fixture
async def api(tmp_path: Path) -> AsyncGenerator[KubernetesApi]:
    async with kubernetes_api(tmp_path) as made:
        yield made


@pytest.fixture
async def proxy(api: KubernetesApi) -> AsyncGenerator[FaultProxy]:
    async with fault_proxy(api.url) as made:
        yield made


@pytest.fixture
def nobody() -> str:
    return "nobody/0f0f0f0f-0000-0000-0000-000000000000"


@pytest.fixture
async def world(proxy: FaultProxy, tmp_path: Path) -> AsyncGenerator[World]:
    token = tmp_path / "token"
    token.write_text(TOKEN)
    settings = KubernetesSettings(
        server=proxy.url, namespace=NAMESPACE, token_file=str(token), program=str(stand_in(tmp_path))
    )

    async def opened(deployment: str) -> Kubernetes:
        return await settings.open(deployment)

    async def wrong() -> Kubernetes:
        path = tmp_path / "wrong"
        path.write_text("another")
        return await msgspec.structs.replace(settings, token_file=str(path)).open("here")

    @asynccontextmanager
    async def silent() -> AsyncGenerator[None]:
        with proxy.fault(lost_answers(lambda asked: asked.method == "POST")):
            yield

    made = World(
        open=opened,
        offer=_OFFER,
        bad_offer=msgspec.structs.replace(_OFFER, name="elsewhere", template="!"),
        bootstraps=tmp_path,
        away=proxy.closed,
        silent=silent,
        wrong=wrong,
    )
    yield made
    for each in made.opened:
        await each.close()


def quota(hard: dict[str, str], used: dict[str, str], **spec: list[str]) -> dict[str, Any]:
    """As Kubernetes shows one."""
    return {
        "apiVersion": "v1",
        "kind": "ResourceQuota",
        "metadata": {"name": "team"},
        "spec": {"hard": hard, **spec},
        "status": {"hard": hard, "used": used},
    }


class TestKubernetes(ProviderSuite):
    """The suite, and what is Kubernetes' own."""

    async def test_a_pod_of_the_name_is_the_one_that_was_asked_for(
        self, world: World, proxy: FaultProxy
    ) -> None:
        """A second request for a lease finds the first one's pod: the name makes it safe."""
        provider = await world.provider()
        with proxy.fault(lost_answers(lambda asked: asked.method == "POST")), pytest.raises(InDoubtError):
            await provider.create(order(_OFFER, "crowd-7-0"), bootstrap("crowd-7-0"))
        handle = await provider.create(order(_OFFER, "crowd-7-0", attempt=2), bootstrap("crowd-7-0"))
        assert [handle] == [each.handle for each in (await provider.find()).machines]
        await gone(provider, handle)

    async def test_quotas_say_how_much_room_there_is(self, world: World, api: KubernetesApi) -> None:
        """The strictest of those that hold for all pods counts; where they may not be read nothing is said."""
        provider = await world.provider()
        assert Room() == await provider.room()
        hard = {"pods": "10", "limits.cpu": "12500m", "requests.memory": "8Gi", "secrets": "3"}
        api.quotas = [
            quota(hard, {"pods": "4", "limits.cpu": "2", "requests.memory": "512Mi", "secrets": "3"}),
            quota({"pods": "7"}, {"pods": "5"}),
            quota({"pods": "1"}, {"pods": "1"}, scopes=["BestEffort"]),
        ]
        assert Room(machines=2, cpus=10, memory=7680) == await provider.room()

    async def test_a_quota_is_told_from_a_wrong_credential(self, world: World, api: KubernetesApi) -> None:
        """Both are answered with 403."""
        provider = await world.provider()
        api.quota = 0
        with pytest.raises(ProviderError) as refused:
            await provider.create(order(_OFFER, "crowd-8-0"), bootstrap("crowd-8-0"))
        assert ErrorClass.QUOTA is refused.value.error
        assert "exceeded quota" in str(refused.value)

    @pytest.mark.parametrize(
        ("status", "state", "error", "words"),
        [
            (
                {"phase": "Pending", "conditions": [{"type": "PodScheduled", "status": "False", "reason": "Unschedulable",
                                                     "message": "0/3 nodes are available"}]},
                MachineState.PENDING, ErrorClass.CAPACITY, "Unschedulable: 0/3 nodes are available",
            ),
            (
                {"phase": "Pending", "containerStatuses": [{"state": {"waiting": {"reason": "ErrImagePull", "message": "no such"}}}]},
                MachineState.BROKEN, ErrorClass.IMAGE, "ErrImagePull: no such",
            ),
            (
                {"phase": "Failed", "reason": "Evicted", "message": "The node was low on memory"},
                MachineState.BROKEN, ErrorClass.CAPACITY, "Failed: Evicted: The node was low on memory",
            ),
            ({"phase": "Failed", "reason": "DeadlineExceeded"}, MachineState.BROKEN, None, "Failed: DeadlineExceeded"),
            ({"phase": "Unknown"}, MachineState.RUNNING, None, "Unknown"),
        ],
    )  # fmt: skip
    async def test_why_a_pod_does_not_run_is_said(
        self,
        world: World,
        api: KubernetesApi,
        status: dict[str, Any],
        state: MachineState,
        error: ErrorClass | None,
        words: str,
    ) -> None:
        """What hinders a pod is told in words and as a class, and whether waiting helps."""
        provider = await world.provider()
        api.start = lambda _name: status
        handle = await provider.create(order(_OFFER, "crowd-9-0"), bootstrap("crowd-9-0"))
        found = await provider.get(handle)
        assert (state, error, words) == (found.state, found.error, found.words)
        assert "" == await provider.console(handle)
        await gone(provider, handle)

    async def test_another_pod_of_the_name_is_left_alone(self, world: World, api: KubernetesApi) -> None:
        """A pod that took the name of ours has another UID: ours is gone, and the other one stays."""
        provider = await world.provider()
        handle = await provider.create(order(_OFFER, "crowd-10-0"), bootstrap("crowd-10-0"))
        name, _, _uid = handle.partition("/")
        api.pods[name].object["metadata"]["uid"] = "another"
        assert MachineState.GONE is (await provider.get(handle)).state
        await provider.delete(handle)
        assert name in api.pods
        await gone(provider, f"{name}/another")

    async def test_a_list_that_went_stale_is_begun_again(
        self, world: World, api: KubernetesApi, proxy: FaultProxy
    ) -> None:
        """Pages follow each other; one that is not to be had any more (410) is no reason to miss a pod."""
        provider = await world.provider()
        handles = [
            await provider.create(order(_OFFER, f"crowd-11-{number}"), bootstrap(f"crowd-11-{number}"))
            for number in range(3)
        ]
        api.page = 2
        stale = answered(lambda asked: "continue=" in asked.path, Answer(410, {}, b"{}"), times=1)
        with proxy.fault(stale):
            found = await provider.find()
        assert (True, sorted(handles)) == (found.complete, sorted(each.handle for each in found.machines))
        broken = answered(lambda asked: "continue=" in asked.path, Answer(503, {}, b"{}"))
        with proxy.fault(broken):
            found = await provider.find()
        assert (False, 2) == (found.complete, len(found.machines))
        for each in handles:
            await gone(provider, each)

    async def test_no_command_line_has_the_token(self, world: World, api: KubernetesApi) -> None:
        """
        What every job in a pod may read of its first process is without the secret; its log is the console.
        """
        provider = await world.provider()
        handle = await provider.create(order(_OFFER, "crowd-12-0"), bootstrap("crowd-12-0"))
        (pod,) = api.pods.values()
        assert bootstrap("crowd-12-0").token not in str(pod.object["spec"]["containers"][0]["command"])
        assert 600 == pod.object["spec"]["activeDeadlineSeconds"]
        assert "Never" == pod.object["spec"]["restartPolicy"]
        await gone(provider, handle)
