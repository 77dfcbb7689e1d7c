"""Which kinds of providers there are, and how the table of one is read."""

import importlib
from collections.abc import Mapping
from typing import Final, cast

import msgspec

from kettle.terminal.nearest_names import did_you_mean
from kettle_services.provisioner.providers.settings import ProviderSettings

KINDS: Final[Mapping[str, str]] = {
    "process": "kettle_services.provisioner.providers.process:ProcessSettings",
    "slurm": "kettle_services.provisioner.providers.slurm:SlurmSettings",
    "ssh": "kettle_services.provisioner.providers.ssh:SshSettings",
    "ec2": "kettle_services.provisioner.providers.ec2:Ec2Settings",
    "kubernetes": "kettle_services.provisioner.providers.kubernetes:KubernetesSettings",
    "openstack": "kettle_services.provisioner.providers.openstack:OpenStackSettings",
    "power": "kettle_services.provisioner.providers.power:PowerSettings",
    "im": "kettle_services.provisioner.providers.im:ImSettings",
}
"""Each kind with the settings of its table; no module of a provider that nobody uses is imported."""


_EXTRAS: Final[Mapping[str, str]] = {"asyncssh": "ssh", "botocore": "ec2"}
"""Packages of others that a kind needs, with the extra of Kettle that brings them."""


def settings_class(kind: str) -> type[ProviderSettings]:
    """
    The settings of a kind.

    Raises:
        ValueError: a package that it needs is not installed.
    """
    module, _, name = KINDS[kind].partition(":")
    try:
        return cast("type[ProviderSettings]", getattr(importlib.import_module(module), name))
    except ModuleNotFoundError as error:
        extra = _EXTRAS.get((error.name or "").partition(".")[0])
        if extra is None:
            raise
        raise ValueError(f"{error.name} is not installed here: install kettle[{extra}]") from None


def read(name: str, table: Mapping[str, object]) -> ProviderSettings:
    """
    The settings of one provider.

    Raises:
        ValueError: what is wrong with the table, in one sentence.
    """
    where = f"provider {name}"
    kind = str(table.get("kind", ""))
    if kind not in KINDS:
        said = f"unknown kind {kind}{did_you_mean(kind, KINDS)}" if kind else "it does not say its kind"
        raise ValueError(f"{where}: {said}; there are {', '.join(KINDS)}")
    keys = {key: value for key, value in table.items() if key != "kind"}
    try:
        settings = settings_class(kind)
    except ValueError as error:
        raise ValueError(f"{where}: {error}") from None
    known = [field.name for field in msgspec.structs.fields(settings)]
    for key in keys:
        if key not in known:
            raise ValueError(f"{where}: unknown key {key}{did_you_mean(key, known)}")
    try:
        return msgspec.convert(keys, settings)
    except msgspec.ValidationError as error:
        raise ValueError(f"{where}: {error}") from None
