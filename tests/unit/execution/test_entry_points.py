"""What of an image is run, and how its services are reached."""

import pytest

from kettle.execution.containers.images.archives import ImageConfig
from kettle.execution.containers.job_container import with_image_config
from kettle.execution.containers.policy import ContainerError, ContainerPolicy
from kettle.execution.containers.request import container_request
from kettle.execution.job_environment.job_ad import JobAd
from kettle.execution.processes.launch import Program
from kettle_wire.ads import Ad

CONFIG = ImageConfig(env=[], entrypoint=["/entry", "-x"], command=["usual"], size=0)
IMAGE: Ad = {"ContainerImage": "docker://a", "WantContainer": True}


def words(path: str, arguments: list[str], *, under: bool) -> list[str]:
    program = Program(
        path=path, arguments=arguments, environment={}, directory="/", stdin="i", stdout="o", stderr="e"
    )
    made = with_image_config(program, CONFIG, "/srv", under=under)
    return [made.path, *made.arguments]


def test_the_entry_point_runs_the_program_if_it_is_not_overridden() -> None:
    """Without a program it runs by itself, with the job's arguments or its usual ones."""
    assert ["/bin/a", "1"] == words("/bin/a", ["1"], under=False)
    assert ["/entry", "-x", "/bin/a", "1"] == words("/bin/a", ["1"], under=True)
    for under in (True, False):
        assert ["/entry", "-x", "1"] == words("", ["1"], under=under)
        assert ["/entry", "-x", "usual"] == words("", [], under=under)


def test_the_job_says_whether_it_overrides() -> None:
    """It does unless it says that it does not."""
    for said, under in ((None, False), (True, False), (False, True)):
        ad = IMAGE if said is None else IMAGE | {"DockerOverrideEntrypoint": said}
        request = container_request(JobAd(ad), None, "/sandbox")
        assert request is not None
        assert under is request.under_entrypoint


def test_services_need_the_network_of_the_machine() -> None:
    """A machine whose containers have none does not pretend."""
    job = JobAd(IMAGE | {"ContainerServiceNames": "web", "web_ContainerPort": 80})
    assert container_request(job, None, "/sandbox") is not None
    with pytest.raises(ContainerError, match="have no network"):
        container_request(
            job, ContainerPolicy(runtimes=[], images="/images", limit=0, network="none"), "/sandbox"
        )
