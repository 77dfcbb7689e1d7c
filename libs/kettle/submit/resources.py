"""
What a job needs: cores, memory, disk, other resources, the transfer of its files, and the Requirements of it all.
"""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import msgspec

from kettle.classad import Node, external_references, references, unparse
from kettle.classad.nodes import Literal
from kettle.submit.commands import is_choice, resource_tag
from kettle.submit.containers import Container, container_of
from kettle.submit.errors import PlacelessError
from kettle.submit.expressions import constant, expression, is_undefined, unquoted, wire
from kettle.submit.lookup import Lookup, Setting, is_settled, placed
from kettle.submit.units import amount
from kettle.wire.ads.types import Ad, Expr

_TRANSFER_MODES: Final = frozenset({"YES", "NO", "IF_NEEDED"})
_TOO_LONG: Final = re.compile(r"[0-9]{20,}")
"""Integers have 64 bits, and larger ones turn up negative."""
_WHEN: Final = frozenset({"ON_EXIT", "ON_EXIT_OR_EVICT"})
_OPSYS_NAMES: Final = frozenset({"opsys", "opsysandver", "opsysname", "opsysshortname", "opsyslongname"})


class Request(msgspec.Struct, frozen=True):
    """
    One `request_...`: the attribute, the machine's side of it, how much (None: switched off), and `require_...`.
    """

    attribute: str
    resource: str
    need: Node | None
    choice: Node | None = None
    """What the properties of each piece must satisfy."""

    @property
    def literal(self) -> object:
        """
        The amount if it is written out, else None.
        """
        return self.need.value if isinstance(self.need, Literal) else None


class Transfer(msgspec.Struct, frozen=True):
    """
    How files get to the machine and back.
    """

    mode: str
    when: str
    inputs: tuple[str, ...]
    outputs: str | None
    input_bytes: int
    executable_bytes: int

    @property
    def plugins(self) -> list[str]:
        """
        The URL schemes among the inputs, in order, each once.
        """
        schemes = (name.partition("://")[0].lower() for name in self.inputs if "://" in name)
        return list(dict.fromkeys(schemes))


def needs(lookup: Lookup) -> Ad:
    """
    All of this module's attributes.  They are one rule because Requirements depends on each of the others.
    """
    container = container_of(lookup)
    transfer = _transfer(lookup, container)
    megabytes = -(-(transfer.input_bytes + transfer.executable_bytes) // (1 << 20))
    requests = list(_requests(lookup, megabytes))
    ad: Ad = {request.attribute: wire(request.need) for request in requests if request.need is not None}
    ad |= {f"Require{each.resource}": wire(each.choice) for each in requests if each.choice is not None}
    ad |= _transfer_attributes(transfer, lookup, megabytes)
    if container is not None:
        ad |= container.attributes
    ad["Requirements"] = _requirements(lookup, requests, transfer, container)
    return ad


def _requests(lookup: Lookup, megabytes: int) -> Iterator[Request]:
    site = lookup.site
    disk_kib = int(max(site.request_disk_minimum, (megabytes + 1) * 1.25) * 1024)
    for name, resource, unit, default in (
        ("cpus", "Cpus", "", site.request_cpus),
        ("memory", "Memory", "M", site.request_memory),
        ("disk", "Disk", "K", disk_kib),
    ):
        given = lookup.get(f"request_{name}")
        need = Literal(default) if given is None else _need(given, f"request_{name}", unit, least=1)
        yield Request(f"Request{resource}", resource, None if is_undefined(need) else need)
    choices = {key: one for key, one in lookup.queue.assignments.items() if is_choice(key)}
    for key, assignment in lookup.queue.assignments.items():
        tag = resource_tag(assignment.name)
        if tag is None:
            continue
        tag = "GPUs" if tag.lower() == "gpus" else tag
        setting = lookup.expanded(assignment)
        if setting.text:
            choice = choices.pop(f"require_{tag.lower()}", None)
            yield Request(
                f"Request{tag}",
                tag,
                _need(setting, key, "", least=0),
                None if choice is None else _choice(lookup.expanded(choice)),
            )
    for key, assignment in choices.items():
        setting = lookup.expanded(assignment)
        if setting.text:
            tag = key.partition("_")[2]
            setting.refuse(f"{key} chooses among what request_{tag} asks for; add: request_{tag} = 1")


def _choice(setting: Setting) -> Node | None:
    try:
        return expression(setting.text) if setting.text else None
    except PlacelessError as error:
        raise placed(setting, error) from error


def _need(given: Setting, name: str, unit: str, *, least: int) -> Node:
    """
    A literal amount, or an expression; what is plainly less than `least` is refused.
    """
    number = amount(given.text, unit=unit) if unit else None
    try:
        node = expression(given.text) if number is None else Literal(number)
    except PlacelessError as error:
        raise placed(given, error) from error
    value = constant(node)
    if isinstance(value, bool):
        given.refuse(f"{name} must be a number, not {given.text}")
    if isinstance(value, int) and _TOO_LONG.search(given.text):
        given.refuse(f"{name} is a number too large to count with: {given.text}")
    if isinstance(value, int | float) and value < least:
        bound = "zero or more" if not least else "more than zero" if value <= 0 else f"at least {least}"
        given.refuse(f"{name} must be {bound}, not {given.text}")
    return node


def _transfer(lookup: Lookup, container: Container | None) -> Transfer:
    given, when = lookup.get("should_transfer_files"), lookup.get("when_to_transfer_output")
    mode = given.text.upper() if given else "IF_NEEDED"
    if given and mode not in _TRANSFER_MODES:
        given.refuse(f"should_transfer_files must be YES, NO or IF_NEEDED, not '{given.text}'")
    if when:
        _check_when(when, mode)
    outputs = lookup.get("transfer_output_files")
    inputs = _inputs(lookup)
    if container is not None and container.transferred and container.transferred not in inputs:
        inputs += (container.transferred,)
    return Transfer(
        mode=mode,
        when=when.text.upper() if when else "ON_EXIT",
        inputs=inputs,
        outputs=None if outputs is None else ",".join(_names(unquoted(outputs.text))),
        input_bytes=sum(lookup.disk.size(lookup.iwd() / name) or 0 for name in inputs if "://" not in name),
        executable_bytes=_executable_bytes(lookup),
    )


def _check_when(when: Setting, mode: str) -> None:
    wanted = when.text.upper()
    if wanted == "ON_SUCCESS":
        when.refuse(
            "when_to_transfer_output = ON_SUCCESS is not carried out by this version of Kettle; use ON_EXIT"
        )
    if wanted not in _WHEN:
        when.refuse(f"when_to_transfer_output must be ON_EXIT or ON_EXIT_OR_EVICT, not '{when.text}'")
    if mode == "NO":
        when.refuse(
            "when_to_transfer_output makes no sense with should_transfer_files = NO; remove one of the two"
        )
    if mode == "IF_NEEDED" and wanted == "ON_EXIT_OR_EVICT":
        when.refuse("when_to_transfer_output = ON_EXIT_OR_EVICT needs should_transfer_files = YES")


def _names(text: str) -> list[str]:
    return [name.strip() for name in text.split(",") if name.strip()]


def _inputs(lookup: Lookup) -> tuple[str, ...]:
    given = lookup.get("transfer_input_files")
    if given is None:
        return ()
    names = tuple(_names(unquoted(given.text)))
    for name in names:
        path = lookup.iwd() / name
        if not lookup.site.check_files or "://" in name or not is_settled(path):
            continue
        if why := lookup.disk.unreadable(path):
            given.refuse(f"the input file {path} {why}")
    return names


def _executable_bytes(lookup: Lookup) -> int:
    given = lookup.get("executable")
    return (lookup.disk.size(lookup.cwd / Path(unquoted(given.text))) or 0) if given else 0


def _transfer_attributes(transfer: Transfer, lookup: Lookup, megabytes: int) -> Ad:
    image_kib = -(-transfer.executable_bytes // 1024)
    ad: Ad = {
        "ShouldTransferFiles": transfer.mode,
        "TransferInputSizeMB": megabytes,
        "ExecutableSize": image_kib,
        "ImageSize": image_kib,
        "DiskUsage": max(1, image_kib + -(-transfer.input_bytes // 1024)),
    }
    if transfer.mode != "NO":
        ad["WhenToTransferOutput"] = transfer.when
    if transfer.mode != "YES":
        ad["FileSystemDomain"] = lookup.site.file_system_domain
    if transfer.inputs:
        ad["TransferInput"] = ",".join(transfer.inputs)
    if transfer.plugins:
        ad["WantTransferPluginMethods"] = ",".join(transfer.plugins)
    if transfer.outputs is not None:
        ad["TransferOutput"] = transfer.outputs
    return ad


def _requirements(
    lookup: Lookup, requests: list[Request], transfer: Transfer, container: Container | None
) -> Expr:
    given = lookup.get("requirements")
    clauses: list[str] = []
    checked: set[str] = set()
    if given:
        try:
            node = expression(given.text)
        except PlacelessError as error:
            raise placed(given, error) from error
        if "requirements" in {name.lower() for name in references(node).external}:
            given.refuse("requirements refers to itself")
        checked = {name.lower() for name in external_references(node)}
        clauses.append(f"({unparse(node)})")
    if "arch" not in checked:
        clauses.append(f"(TARGET.Arch == {_quoted(lookup.site.arch)})")
    if container is not None:
        clauses.append(container.requirement)
    elif not checked & _OPSYS_NAMES:
        clauses.append(f"(TARGET.OpSys == {_quoted(lookup.site.opsys)})")
    clauses += _fits(requests, checked)
    clauses += _reachable(transfer, checked)
    return Expr(" && ".join(clauses))


def _fits(requests: list[Request], checked: set[str]) -> Iterator[str]:
    by_name = {request.resource: request for request in requests}
    ordered = [by_name.pop(name) for name in ("Disk", "Memory", "Cpus")] + list(by_name.values())
    for request in ordered:
        literal = request.literal
        small = isinstance(literal, int | float) and literal <= (
            1 if request.resource in {"Memory", "Cpus"} else 0
        )
        if request.need is None or small or (request.resource == "Cpus" and "cpus" in checked):
            continue
        if request.choice is not None:
            counted = f"countMatches(MY.Require{request.resource},TARGET.Available{request.resource})"
            yield f"({counted} >= {request.attribute})"
        elif isinstance(literal, str):
            yield f"regexp({request.attribute},TARGET.{request.resource})"
        else:
            yield f"(TARGET.{request.resource} >= {request.attribute})"


def _reachable(transfer: Transfer, checked: set[str]) -> Iterator[str]:
    listed = (
        f"stringListIMember({_quoted(s)},TARGET.HasFileTransferPluginMethods)" for s in transfer.plugins
    )
    moved = " && ".join(["TARGET.HasFileTransfer", *listed])
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


def _quoted(text: str) -> str:
    return unparse(Literal(text))
