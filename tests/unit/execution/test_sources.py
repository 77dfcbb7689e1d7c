"""An image is shared by all who name the same digest: nobody can put another one in its place."""

import hashlib
from pathlib import Path
from unittest import mock

import pytest

from kettle.execution.attempts.job_spec import Account, Input, JobSpec
from kettle.execution.containers.images import sources
from kettle.execution.containers.images.cache import Image, key_of
from kettle.execution.containers.images.sources import image_cache, image_of
from kettle.execution.containers.policy import ContainerPolicy
from kettle.execution.containers.request import ContainerRequest
from kettle.testing.container_images import member, oci_layout, tar_with
from kettle_wire.commands.startd import ClaimKey
from kettle_wire.jobs import JobId

HONEST, POISON = (tar_with(member("tool"), data=data) for data in (b"honest", b"poison"))


@pytest.fixture
def policy(tmp_path: Path) -> ContainerPolicy:
    return ContainerPolicy(runtimes=[], images=str(tmp_path / "images"), limit=1 << 20)


def had(policy: ContainerPolicy, image: str, *inputs: Input, account: Account | None = None) -> Image:
    """The image of a job with these input files."""
    spec = JobSpec(
        key=ClaimKey("c", "s"), job=JobId(1, 0), attempt=1, schedd="s", execute="/e", state="/s", slot="slot1",
        cpus=1, memory=1, disk=1, ad={}, machine_ad="", inputs=list(inputs), received=0, began=0, deadline=0,
        sequence=0, account=account,
    )  # fmt: skip
    request = ContainerRequest(image=image, form="files", local=image.startswith("/"))
    return image_of(spec, request, image_cache(policy), "/e/dir")


def tool(image: Image) -> str:
    image.release()
    return (Path(image.root) / "tool").read_text()


@pytest.mark.parametrize("claimed", [hashlib.sha256(HONEST).hexdigest(), "../../elsewhere", ""])
def test_what_comes_inline_is_known_by_its_own_digest(
    tmp_path: Path, policy: ContainerPolicy, claimed: str
) -> None:
    """
    Whatever is claimed about it: it does not become the image of those who name the real one, and leads nowhere else.
    """
    assert "poison" == tool(had(policy, "x.tar", Input("x.tar", 0o644, data=POISON, sha256=claimed)))

    assert "honest" == tool(had(policy, "x.tar", Input("x.tar", 0o644, data=HONEST)))
    assert {"images"} == {path.name for path in tmp_path.iterdir()}


def test_a_layout_that_changes_while_it_is_unpacked_stays_its_owners(
    tmp_path: Path, policy: ContainerPolicy
) -> None:
    """
    What is unpacked is what was hashed, so replacing a file cannot put another layout under the same digest.
    """
    honest, poison = (
        oci_layout(tmp_path / name, data) for name, data in (("honest", HONEST), ("poison", POISON))
    )
    attack = oci_layout(tmp_path / "attack", POISON)
    index = attack / "index.json"
    index.write_bytes((honest / "index.json").read_bytes())

    def exchanging(*arguments: object) -> str:
        index.write_bytes((poison / "index.json").read_bytes())
        return key_of(*arguments)

    with mock.patch.object(sources, "key_of", exchanging), pytest.raises(Exception, match="image"):
        had(policy, str(attack))

    assert "honest" == tool(had(policy, str(honest)))
