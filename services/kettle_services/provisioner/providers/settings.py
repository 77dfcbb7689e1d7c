"""What every kind of provider may be told, and how options of offers and files of secrets are read."""

import os
from pathlib import Path
from typing import Annotated, ClassVar, TypeVar

import msgspec

from kettle.terminal.nearest_names import did_you_mean
from kettle_services.provisioner.port import Provider, ProviderError
from kettle_wire.leases import ErrorClass
from kettle_wire.worker_pools import Offer

_T = TypeVar("_T")


class NoOptions(msgspec.Struct, frozen=True):
    """An offer has none that only its provider knows."""


class ProviderSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """
    The table of one provider.  A secret is never in it: keys that end in `_file` name a file that has it.
    """

    OPTIONS: ClassVar[type[msgspec.Struct]] = NoOptions
    """What an offer may say in its `options`."""

    program: str = "kettle"
    """The command `kettle` on the machines, found by their PATH or given as a path."""
    before: list[str] = []
    """Lines of shell that a machine runs before the worker's program, such as `module load python`."""
    patience: Annotated[float, msgspec.Meta(gt=0, le=600)] = 30.0
    """Seconds within which the provider has to answer one question."""

    async def open(self, deployment: str) -> Provider:
        """
        The provider.  Machines of other deployments are none of its business.

        Raises:
            ProviderError: what it needs is not installed, or a file of a secret cannot be read.
        """
        raise NotImplementedError


def options_of(offer: Offer, kind: type[_T]) -> _T:
    """
    The options of an offer that only its provider knows.

    Raises:
        ProviderError: one is unknown, or has a value of the wrong type.
    """
    known = [field.name for field in msgspec.structs.fields(kind)]  # type: ignore[type-var]
    for name in offer.options:
        if name not in known:
            near = did_you_mean(name, known)
            raise ProviderError(ErrorClass.REQUEST, f"offer {offer.name}: unknown option {name}{near}")
    try:
        return msgspec.convert(offer.options, kind)
    except msgspec.ValidationError as error:
        raise ProviderError(ErrorClass.REQUEST, f"offer {offer.name}: options: {error}") from None


def secret_in(path: str, key: str) -> str:
    """
    The secret in a file, read anew each time, so that a changed one counts at once.

    Raises:
        ProviderError: there is none; its class is `config`.
    """
    try:
        text = Path(os.path.expandvars(path)).expanduser().read_text().strip()
    except (OSError, UnicodeDecodeError) as error:
        raise ProviderError(ErrorClass.CONFIG, f"{key}: {path} cannot be read: {error}") from None
    if not text:
        raise ProviderError(ErrorClass.CONFIG, f"{key}: {path} is empty")
    return text
