"""
How a job's files get to the machine and back: the commands, their attributes, and what they ask of machines.
"""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

import msgspec

from kettle.classad import unparse
from kettle.submit.containers import Container
from kettle.submit.errors import PlacelessError
from kettle.submit.expressions import scalar, unquoted
from kettle.submit.lookup import Lookup, Setting, flag, is_settled, placed, readable
from kettle.submit.s3_keys import keys
from kettle.submit.tasks import has_tasks
from kettle.submit.units import amount
from kettle.transfer.checkpoint_manifest import CheckpointError, refuse
from kettle.transfer.exclusions import ATTRIBUTE, exclusions
from kettle.transfer.file_lists import (
    ManifestError,
    is_url,
    items,
    job_plugins,
    leaves,
    name_of_url,
    remaps,
    scheme_of,
)
from kettle.transfer.s3_signatures import METHODS
from kettle_wire.ads.types import Ad

_MODES: Final = {"YES": "YES", "NO": "NO", "IF_NEEDED": "IF_NEEDED", "TRUE": "YES", "FALSE": "NO"}
_WHEN: Final = frozenset({"ON_EXIT", "ON_EXIT_OR_EVICT", "ON_SUCCESS"})
_ENCRYPTION: Final = {
    "encrypt_input_files": "EncryptInputFiles",
    "encrypt_output_files": "EncryptOutputFiles",
    "dont_encrypt_input_files": "DontEncryptInputFiles",
    "dont_encrypt_output_files": "DontEncryptOutputFiles",
}
_LIMITS: Final = {
    "max_transfer_input_mb": "MaxTransferInputMB",
    "max_transfer_output_mb": "MaxTransferOutputMB",
}


class Transfer(msgspec.Struct, frozen=True, kw_only=True):
    """How files get to the machine and back."""

    mode: str
    when: str
    inputs: tuple[str, ...]
    public: tuple[str, ...]
    outputs: str | None
    input_kib: int
    """Of all files, each rounded up."""
    executable_kib: int
    attributes: Ad
    """Of the commands that become an attribute and nothing else."""
    urls: tuple[str, ...]
    """Where results go that do not go to the submitter."""
    plugins: Mapping[str, str]
    """What the job brings along, by method."""
    encrypted: bool

    @property
    def methods(self) -> list[str]:
        """The URL schemes that the machine must move, in order, each once."""
        schemes = (scheme_of(item) for item in (*self.inputs, *self.public, *self.urls) if is_url(item))
        return [scheme for scheme in dict.fromkeys(schemes) if scheme not in self.plugins]


def transfer_of(lookup: Lookup, container: Container | None) -> Transfer:
    """What the description says about files."""
    mode, when = _mode(lookup), lookup.get("when_to_transfer_output")
    if when and when.text.upper() == "ON_EXIT_OR_EVICT" and lookup.get("should_transfer_files") is None:
        mode = "YES"  # what a job leaves when it is sent away has to be somewhere
    if when:
        _check_when(when, mode)
    if mode == "NO" and container is not None:
        lookup.refuse(
            "a container cannot have should_transfer_files = NO: it does not see the shared file system"
        )
    inputs = _listed(lookup, "transfer_input_files") + _listed(lookup, "transfer_common_input")
    if container is not None and container.transferred and container.transferred not in inputs:
        inputs += (container.transferred,)
    public, plugins = _listed(lookup, "public_input_files"), _plugins(lookup)
    attributes, urls = _plain(lookup), _destinations(lookup)
    methods = {scheme_of(item) for item in (*inputs, *public, *urls) if is_url(item)}
    attributes |= keys(lookup, needed=bool(methods.difference(plugins).intersection(METHODS)))
    files = (name for name in (*inputs, *public, *_standard_input(lookup)) if not is_url(name))
    return Transfer(
        mode=mode,
        when=when.text.upper() if when else "ON_EXIT",
        inputs=inputs,
        public=public,
        outputs=_outputs(lookup),
        input_kib=sum(_in_kib(lookup.disk.size(lookup.iwd() / name)) for name in files),
        executable_kib=_executable_kib(lookup),
        attributes=attributes,
        urls=urls,
        plugins=plugins,
        encrypted=any(name in attributes for name in _ENCRYPTION.values()),
    )


def _mode(lookup: Lookup) -> str:
    given = lookup.get("should_transfer_files")
    if has_tasks(lookup):
        if given is not None and given.text.upper() == "NO":
            given.refuse("tasks share a sandbox, which a job has whose files are transferred: write YES")
        return "YES"
    if given is None:
        return "IF_NEEDED"
    if given.text.upper() not in _MODES:
        given.refuse(f"should_transfer_files must be YES, NO or IF_NEEDED, not '{given.text}'")
    return _MODES[given.text.upper()]


def _check_when(when: Setting, mode: str) -> None:
    wanted = when.text.upper()
    if wanted not in _WHEN:
        when.refuse(
            f"when_to_transfer_output must be ON_EXIT, ON_SUCCESS or ON_EXIT_OR_EVICT, not '{when.text}'"
        )
    if mode == "NO":
        when.refuse(
            "when_to_transfer_output makes no sense with should_transfer_files = NO; remove one of the two"
        )
    if mode == "IF_NEEDED" and wanted == "ON_EXIT_OR_EVICT":
        when.refuse("when_to_transfer_output = ON_EXIT_OR_EVICT needs should_transfer_files = YES")


def _listed(lookup: Lookup, command: str) -> tuple[str, ...]:
    """Input files: those of the submitter have to be there, URLs have to name a file."""
    given = lookup.get(command)
    if given is None:
        return ()
    names = tuple(items(unquoted(given.text)))
    for name in names:
        if is_url(name):
            _named(given, name)
        else:
            readable(lookup, given, name)
    return names


def _named(given: Setting, url: str) -> None:
    if is_settled(url):
        try:
            name_of_url(url)
        except ManifestError as error:
            given.refuse(str(error))


def _outputs(lookup: Lookup) -> str | None:
    given = lookup.get("transfer_output_files")
    if given is None:
        return None
    names = items(unquoted(given.text))
    for name in names:
        if is_settled(name) and leaves(name):
            given.refuse(
                f"the output file {name} leads out of the sandbox; name it relative to where the job starts"
            )
    return ",".join(names)


def _plugins(lookup: Lookup) -> Mapping[str, str]:
    given = lookup.get("transfer_plugins")
    if given is None:
        return {}
    try:
        plugins = job_plugins(unquoted(given.text))
    except ManifestError as error:
        given.refuse(f"transfer_plugins: {error}")
    for path in plugins.values():
        readable(lookup, given, path)
    return plugins


def _destinations(lookup: Lookup) -> tuple[str, ...]:
    """The URLs to which results go."""
    found: list[str] = []
    for command in ("output_destination", "checkpoint_destination"):
        if given := lookup.get(command):
            if not is_url(unquoted(given.text)):
                given.refuse(f"{command} must be a URL, as https://host/directory, not '{given.text}'")
            found.append(unquoted(given.text))
            if command == "checkpoint_destination":
                try:
                    refuse(unquoted(given.text))
                except CheckpointError as error:
                    given.refuse(f"{command}: {error}")
    if given := lookup.get("transfer_output_remaps"):
        try:
            found += remaps(unquoted(given.text)).targets.values()
        except ManifestError as error:
            given.refuse(f"transfer_output_remaps: {error}")
    return tuple(target for target in found if is_url(target))


def _plain(lookup: Lookup) -> Ad:
    ad: Ad = {}
    for command, attribute in (
        *_ENCRYPTION.items(),
        ("output_destination", "OutputDestination"),
        ("checkpoint_destination", "CheckpointDestination"),
        ("transfer_output_remaps", "TransferOutputRemaps"),
        ("transfer_plugins", "TransferPlugins"),
    ):
        if given := lookup.get(command):
            ad[attribute] = unquoted(given.text)
    for command, attribute in _LIMITS.items():
        if given := lookup.get(command):
            try:
                ad[attribute] = scalar(given.text)
            except PlacelessError as error:
                raise placed(given, error) from error
    if given := lookup.get("transfer_exclude_files"):
        try:
            exclusions(unquoted(given.text))
        except ManifestError as error:
            given.refuse(f"transfer_exclude_files: {error}")
        ad[ATTRIBUTE] = unquoted(given.text)
    if lookup.get("preserve_relative_paths"):
        ad["PreserveRelativePaths"] = flag(lookup, "preserve_relative_paths", default=False)
    return ad


def _executable_kib(lookup: Lookup) -> int:
    given = lookup.get("executable")
    return _in_kib(lookup.disk.size(lookup.cwd / Path(unquoted(given.text)))) if given else 0


def _standard_input(lookup: Lookup) -> list[str]:
    given = lookup.get("input")
    moved = given is not None and flag(lookup, "transfer_input", default=True)
    return [unquoted(given.text)] if given is not None and moved else []


def _in_kib(size: int | None) -> int:
    return -(-(size or 0) // 1024)


def transfer_attributes(transfer: Transfer, lookup: Lookup, megabytes: int) -> Ad:
    """The part of the job ad; `megabytes` is the size of all input."""
    image_kib = transfer.executable_kib
    ad: Ad = {
        "ShouldTransferFiles": transfer.mode,
        "TransferInputSizeMB": megabytes,
        "ExecutableSize": image_kib,
        "ImageSize": image_kib,
        "DiskUsage": max(1, image_kib + transfer.input_kib),
    }
    if usage := lookup.get("image_size"):
        ad["ImageSize"] = _kib(usage, "image_size")
    if usage := lookup.get("disk_usage"):
        ad["DiskUsage"] = _kib(usage, "disk_usage")
        del ad["TransferInputSizeMB"]
    if transfer.mode != "NO":
        ad["WhenToTransferOutput"] = transfer.when
    if transfer.mode != "YES":
        ad["FileSystemDomain"] = lookup.site.file_system_domain
    if transfer.inputs:
        ad["TransferInput"] = ",".join(transfer.inputs)
    if transfer.public:
        ad["PublicInputFiles"] = ",".join(transfer.public)
    if transfer.methods:
        ad["WantTransferPluginMethods"] = ",".join(transfer.methods)
    if transfer.outputs is not None:
        ad["TransferOutput"] = transfer.outputs
    return ad | transfer.attributes


def _kib(given: Setting, name: str) -> int:
    found = amount(given.text, unit="K")
    if found is None or found < 1:
        given.refuse(f"{name} must be an amount of at least 1 KiB, as 2 GB, not '{given.text}'")
    return found


def reachable(transfer: Transfer, checked: set[str]) -> Iterator[str]:
    """
    The clause of Requirements; `checked` are the attributes that the submitter looks at himself, in lower case.
    """
    moved = " && ".join(
        [
            "TARGET.HasJobTransferPlugins" if transfer.plugins else "TARGET.HasFileTransfer",
            *(["TARGET.HasPerFileEncryption"] if transfer.encrypted else []),
            *(
                f"stringListIMember({unparse(method)},TARGET.HasFileTransferPluginMethods)"
                for method in transfer.methods
            ),
        ]
    )
    shared = "TARGET.FileSystemDomain == MY.FileSystemDomain"
    if "hasfiletransfer" in checked:
        return
    match transfer.mode:
        case "NO" if "filesystemdomain" not in checked:
            yield f"({shared})"
        case "IF_NEEDED" if "filesystemdomain" not in checked:
            yield f"(({shared}) || ({moved}))"
        case "YES" | "IF_NEEDED":
            yield f"({moved})"
        case _:
            return
