"""
What a job needs: cores, memory, disk, other resources, the transfer of its files, and the Requirements of it all.
"""

import re
from collections.abc import Iterator
from typing import Final

import msgspec

from kettle.classad import Node, external_references, references, unparse
from kettle.classad.nodes import Literal
from kettle.submit.checkpoints import checkpointing
from kettle.submit.commands import is_choice, resource_tag
from kettle.submit.containers import Container, container_of
from kettle.submit.deferral import REQUIREMENT, deferral_of
from kettle.submit.errors import PlacelessError
from kettle.submit.expressions import constant, expression, is_undefined, wire
from kettle.submit.file_transfer import Transfer, reachable, transfer_attributes, transfer_of
from kettle.submit.gpus import choices, chosen
from kettle.submit.lookup import Lookup, Setting, flag, placed
from kettle.submit.retry_requests import first_of, growth
from kettle.submit.tasks import requirements as task_requirements
from kettle.submit.units import amount
from kettle_wire.ads.types import Ad, Expr

_TOO_LONG: Final = re.compile(r"[0-9]{20,}")
"""Integers have 64 bits, and larger ones turn up negative."""
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
        """The amount if it is written out, else None."""
        return self.need.value if isinstance(self.need, Literal) else None


def needs(lookup: Lookup) -> Ad:
    """
    All of this module's attributes.  They are one rule because Requirements depends on each of the others.
    """
    container = container_of(lookup)
    transfer = transfer_of(lookup, container)
    megabytes = -(-(transfer.input_kib + transfer.executable_kib) // 1024)
    requests = list(_requests(lookup, megabytes))
    ad: Ad = {request.attribute: wire(request.need) for request in requests if request.need is not None}
    ad |= {f"Require{each.resource}": wire(each.choice) for each in requests if each.choice is not None}
    ad |= growth(lookup, ad)
    ad |= transfer_attributes(transfer, lookup, megabytes)
    if any(request.resource == "GPUs" for request in requests):
        ad |= choices(lookup)
    elif cuda := lookup.get("cuda_version"):
        cuda.refuse("cuda_version chooses among the GPUs that request_gpus asks for; add: request_gpus = 1")
    if lookup.get("encrypt_execute_directory"):
        ad["EncryptExecuteDirectory"] = flag(lookup, "encrypt_execute_directory", default=False)
    if container is not None:
        ad |= container.attributes
    clauses, checked = _requirements(lookup, requests, transfer, container)
    if deferral := deferral_of(lookup):
        ad |= deferral
        clauses.append(REQUIREMENT)
    clauses += checkpointing(lookup, checked)
    clauses += task_requirements(lookup)
    ad["Requirements"] = Expr(" && ".join(clauses))
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
        need = Literal(default) if given is None else _need(first_of(given), f"request_{name}", unit, least=1)
        yield Request(f"Request{resource}", resource, None if is_undefined(need) else need)
    if gpus := _gpus(lookup):
        yield gpus
    elif own := lookup.get("require_gpus"):
        own.refuse("require_gpus chooses among what request_gpus asks for; add: request_gpus = 1")
    required = {key: one for key, one in lookup.given.items() if is_choice(key)}
    for tag, setting in sorted(_custom_requests(lookup), key=lambda found: found[0].lower()):
        said = required.pop(f"require_{tag.lower()}", None)
        choice = None if said is None else _choice(lookup.expanded(said))
        need = _need(setting, f"request_{tag.lower()}", "", least=0)
        yield Request(f"Request{tag}", tag, need, choice)
    for key, assignment in required.items():
        setting = lookup.expanded(assignment)
        if setting.text:
            tag = key.partition("_")[2]
            setting.refuse(f"{key} chooses among what request_{tag} asks for; add: request_{tag} = 1")


def _custom_requests(lookup: Lookup) -> Iterator[tuple[str, Setting]]:
    """What is asked for beside cores, memory and disk, but for GPUs."""
    for assignment in lookup.given.values():
        tag = resource_tag(assignment.name)
        if tag is not None and (setting := lookup.expanded(assignment)).text:
            yield tag, setting


def _gpus(lookup: Lookup) -> Request | None:
    given, own = lookup.get("request_gpus"), lookup.get("require_gpus")
    if given is None:
        return None
    need = _need(given, "request_gpus", "", least=0)
    choice = chosen(None if own is None else _choice(own), choices(lookup))
    return Request("RequestGPUs", "GPUs", None if is_undefined(need) else need, choice)


def _choice(setting: Setting) -> Node | None:
    try:
        return expression(setting.text) if setting.text else None
    except PlacelessError as error:
        raise placed(setting, error) from error


def _need(given: Setting, name: str, unit: str, *, least: int) -> Node:
    """A literal amount, or an expression; what is plainly less than `least` is refused."""
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


def _requirements(
    lookup: Lookup, requests: list[Request], transfer: Transfer, container: Container | None
) -> tuple[list[str], set[str]]:
    """Clauses, and the attributes that the submitter looks at himself, in lower case."""
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
    if flag(lookup, "encrypt_execute_directory", default=False):
        clauses.append("TARGET.HasEncryptExecuteDirectory")
    clauses += reachable(transfer, checked)
    return clauses, checked


def _fits(requests: list[Request], checked: set[str]) -> Iterator[str]:
    by_name = {request.resource: request for request in requests}
    ordered = [by_name.pop(name) for name in ("Disk", "Memory", "Cpus")]
    ordered += sorted(by_name.values(), key=lambda request: request.resource.lower())
    for request in ordered:
        literal = request.literal
        small = isinstance(literal, int | float) and literal <= (
            1 if request.resource in {"Memory", "Cpus"} else 0
        )
        if request.resource == "Disk" and request.need is None:
            yield "(TARGET.Disk >= DiskUsage)"
        looked_at = request.resource not in {"Disk", "Memory"} and request.resource.lower() in checked
        if request.need is None or small or looked_at:
            continue
        if request.choice is not None:
            counted = f"countMatches(MY.Require{request.resource},TARGET.Available{request.resource})"
            yield f"({counted} >= {request.attribute})"
        elif isinstance(literal, str):
            yield f"regexp({request.attribute},TARGET.{request.resource})"
        else:
            yield f"(TARGET.{request.resource} >= {request.attribute})"


def _quoted(text: str) -> str:
    return unparse(Literal(text))
