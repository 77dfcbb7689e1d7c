"""The container that a job runs in: its image, how it gets to the machine, and which machines will do."""

import posixpath
import re
from typing import Final

import msgspec

from kettle.submit.commands import PORT
from kettle.submit.errors import PlacelessError
from kettle.submit.expressions import integer, unquoted
from kettle.submit.lookup import Lookup, Setting, flag, is_settled, placed
from kettle_wire.ads.types import Ad

CONTAINERS: Final = ("container", "docker")
"""Universes that are the vanilla one with an image."""

_DOCKER: Final = "docker://"
_PULL_POLICIES: Final = frozenset({"always", "missing"})
_SHARED: Final = ("/cvmfs/",)
"""Directories that are the same on every machine (CONTAINER_SHARED_FS)."""
_SERVICE: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_LARGEST_PORT: Final = 65535
_NETWORKS: Final = frozenset({"host", "none"})


class Container(msgspec.Struct, frozen=True):
    """
    What follows from the image: attributes, a clause of Requirements, and what is transferred (empty: nothing).
    """

    attributes: Ad
    requirement: str
    transferred: str = ""


def container_of(lookup: Lookup) -> Container | None:
    """The container; None for a job without one."""
    universe = lookup.get("universe")
    named = universe.text.lower() if universe else "vanilla"
    image, docker = lookup.get("container_image"), lookup.get("docker_image")
    if image and docker:
        docker.refuse("container_image and docker_image exclude each other; remove one of the two")
    if image is None and docker is None:
        if universe and named in CONTAINERS:
            universe.refuse(f"the {named} universe needs an image; write: {named}_image = ...")
        return None
    if named == "docker":
        return _docker_universe(docker or image)
    if docker:
        return _registry("DockerImage", docker.text)
    assert image is not None
    if image.text.startswith(_DOCKER):
        registry = _registry("ContainerImage", image.text)
        return msgspec.structs.replace(
            registry, attributes={**registry.attributes, "ContainerImageSource": "docker"}
        )
    return _file(lookup, image)


def _docker_universe(image: Setting | None) -> Container:
    assert image is not None
    return Container(
        {"DockerImage": image.text.removeprefix(_DOCKER), "WantDocker": True}, "TARGET.HasDocker"
    )


def _registry(attribute: str, image: str) -> Container:
    return Container(
        {attribute: image, "WantContainer": True, "WantDockerImage": True},
        "TARGET.HasContainer && TARGET.HasDockerURL",
    )


def _file(lookup: Lookup, image: Setting) -> Container:
    """An archive or a directory: on the machine already, or an input file."""
    name = unquoted(image.text)
    sif = name.rstrip("/").endswith(".sif")
    ad: Ad = {"ContainerImage": name, "WantContainer": True, "WantSIF" if sif else "WantSandboxImage": True}
    requirement = f"TARGET.HasContainer && TARGET.{'HasSIF' if sif else 'HasSandboxImage'}"
    transfer = flag(lookup, "transfer_container", default=True)
    if not transfer or name.startswith(_SHARED):
        if not posixpath.isabs(name) and not sif:
            image.refuse(
                f"an image that is not transferred needs its absolute path on the machine, not '{name}'"
            )
        return Container({**ad, "ContainerImageSource": "local"}, requirement)
    if "://" in name:
        return Container({**ad, "ContainerImageSource": name.partition("://")[0]}, requirement, name)
    path = lookup.iwd() / name
    if is_settled(path) and lookup.checks_files and (why := lookup.disk.unreadable(path)):
        hint = f"; for an image of a registry write docker://{name}" if "/" not in name.strip("/") else ""
        lookup.missing(image, "the image", path, f"{why}{hint}")
    ad |= {"ContainerImageSource": "cedar", "ContainerImageFullPath": name}
    return Container(ad, requirement, name.rstrip("/"))


def container_options(lookup: Lookup) -> Ad:
    """How a container is run; a job without one may say it as well, and its own machine may give it one."""
    ad: Ad = {}
    for command, attribute in (
        ("container_target_dir", "ContainerTargetDir"),
        ("mount_under_scratch", "MountUnderScratch"),
        ("docker_network_type", "DockerNetworkType"),
        ("docker_pull_policy", "DockerPullPolicy"),
    ):
        if given := lookup.get(command):
            ad[attribute] = unquoted(given.text)
            _check(command, given)
    ad |= _services(lookup)
    for command, attribute in (
        ("docker_override_entrypoint", "DockerOverrideEntrypoint"),
        ("transfer_container", "TransferContainer"),
    ):
        if lookup.get(command):
            ad[attribute] = flag(lookup, command, default=True)
    return ad


def _services(lookup: Lookup) -> Ad:
    """Names of the services in the container, and the port of each."""
    given = lookup.get("container_service_names")
    if given is None:
        return {}
    network = lookup.get("docker_network_type")
    if network and unquoted(network.text).lower() == "none":
        network.refuse("nobody reaches the services of a container without a network")
    ad: Ad = {"ContainerServiceNames": unquoted(given.text)}
    for name in re.split(r"[\s,]+", unquoted(given.text)):
        if not _SERVICE.fullmatch(name):
            given.refuse(f"container_service_names: '{name}' is no name of letters, digits and _")
        port = lookup.given.get(f"{name.lower()}{PORT}")
        if port is None:
            given.refuse(f"the service {name} needs its port; add: {name}{PORT} = NUMBER")
        setting = lookup.expanded(port)
        try:
            number = integer(setting.text, f"{name}{PORT}")
        except PlacelessError as error:
            raise placed(setting, error) from error
        if not 0 < number <= _LARGEST_PORT:
            setting.refuse(f"{name}{PORT} must be a port from 1 to {_LARGEST_PORT}, not {number}")
        ad[f"{name}_ContainerPort"] = number
    return ad


def _check(command: str, given: Setting) -> None:
    text = unquoted(given.text)
    if command == "docker_network_type":
        if text.lower() not in _NETWORKS:
            given.refuse(f"docker_network_type must be host or none, not '{text}'")
        return
    if command == "docker_pull_policy":
        if text.lower() not in _PULL_POLICIES:
            given.refuse(
                f"docker_pull_policy must be always or missing (an image that is there is not pulled again), not '{text}'"
            )
        return
    for path in text.split(",") if command == "mount_under_scratch" else [text]:
        if not posixpath.isabs(path.strip()) or ".." in path.split("/"):
            given.refuse(f"{command} must be an absolute path in the container, not '{path.strip()}'")
