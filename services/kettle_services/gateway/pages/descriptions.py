"""
The submit description of a job that is there already, from its ad.

Pure.
"""

import re
from collections.abc import Container, Iterator, Mapping
from typing import Final

from kettle.submit.policies import EXPRESSIONS
from kettle.submit.simple_commands import PLAIN
from kettle_services.gateway.rest.command_lines import value_text
from kettle_wire.ads.types import Ad, Expr, Scalar
from kettle_wire.codes import Universe

_COMMANDS: Final[Mapping[str, str]] = {
    "Iwd": "initialdir",
    "In": "input",
    "Out": "output",
    "Err": "error",
    "UserLog": "log",
    "ShouldTransferFiles": "should_transfer_files",
    "WhenToTransferOutput": "when_to_transfer_output",
    "TransferInput": "transfer_input_files",
    "TransferOutput": "transfer_output_files",
    "TransferOutputRemaps": "transfer_output_remaps",
    "ContainerImage": "container_image",
    "DockerImage": "docker_image",
    "RequestCpus": "request_cpus",
    "RequestMemory": "request_memory",
    "RequestDisk": "request_disk",
    "RequestGPUs": "request_gpus",
    "JobPrio": "priority",
    "Rank": "rank",
    "ConcurrencyLimits": "concurrency_limits",
    "AcctGroup": "accounting_group",
    "JobMaxRetries": "max_retries",
    "JobSuccessExitCode": "success_exit_code",
    "NiceUser": "nice_user",
    **{attribute: command for command, (attribute, _) in PLAIN.items()},
    **{attribute: command for command, attribute in EXPRESSIONS.items()},
}
"""Commands of a description by the attributes that they set, and nothing else does."""
_LEFT_OUT: Final = frozenset({"", "/dev/null"})
_USUAL: Final[Mapping[str, str]] = {
    "ShouldTransferFiles": "IF_NEEDED",
    "WhenToTransferOutput": "ON_EXIT",
    "Rank": "0.0",
    "NiceUser": "false",
    "JobPrio": "0",
    "OnExitRemove": "true",
    **dict.fromkeys(("OnExitHold", "PeriodicHold", "PeriodicRelease", "PeriodicRemove"), "false"),
}
"""What these are where nothing is said."""
_UNIVERSES: Final = {Universe.SCHEDULER: "scheduler", Universe.LOCAL: "local"}
_MACRO: Final = re.compile(r"(?<!\$)\$(?=[A-Za-z_]*\()")
"""A dollar sign that would begin a macro; two of them are for the machine, and stay."""
_ARCHITECTURE: Final = '(TARGET.Arch == "X86_64")'
"""With this the requirements of a job begin for which none were said, on most machines."""
_RETRIES: Final = frozenset(
    {"NumJobCompletions > JobMaxRetries", "ExitCode =?= 0", "ExitCode =?= JobSuccessExitCode"}
)
"""The parts of OnExitRemove that retries make."""


def description_like(ad: Ad, known: Container[str]) -> str:
    """
    A description that makes a job like this one.  `known`: names, in lower case, of attributes that jobs have from elsewhere; all
    others are the job's own.  What cannot be said again is named in a comment.
    """
    texts = {name: value_text(value) for name, value in ad.items()}
    lines = [_line(command, text) for command, text in _said(ad, texts) if "\n" not in text]
    lines += [
        f"# Not taken over, for it has several lines: {command}"
        for command, text in _said(ad, texts)
        if "\n" in text
    ]
    lines += [
        _line(f"+{name}", _literal(value))
        for name, value in ad.items()
        if name.lower() not in known and name not in _COMMANDS
    ]
    if "JobMaxRetries" in ad and set(texts.get("OnExitRemove", "").split(" || ")) - _RETRIES:
        lines.append("# Not taken over: retry_until or on_exit_remove, which is part of OnExitRemove")
    return "\n".join([*lines, "queue", ""])


def _said(ad: Ad, texts: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """Commands and what they are."""
    universe = ad.get("JobUniverse")
    if isinstance(universe, int) and universe in _UNIVERSES:
        yield "universe", _UNIVERSES[Universe(universe)]
    yield "executable", texts.get("Cmd", "")
    for command, newer, older in (("arguments", "Arguments", "Args"), ("environment", "Environment", "Env")):
        if texts.get(newer):
            yield command, '"{}"'.format(texts[newer].replace('"', '""'))
        elif texts.get(older):
            yield command, texts[older].replace('"', '\\"')
    for name, command in _COMMANDS.items():
        text = texts.get(name, "")
        by_retries = name == "OnExitRemove" and "JobMaxRetries" in ad
        if text not in _LEFT_OUT and text != _USUAL.get(name) and not by_retries:
            yield command, text
    own = _first_clause(texts.get("Requirements", ""))
    if own and own != _ARCHITECTURE:
        yield "requirements", own[1:-1]


def _first_clause(text: str) -> str:
    """What is in the parentheses with which it begins, and these; empty: it does not begin with any."""
    depth, quoted = 0, False
    for place, char in enumerate(text):
        if char == '"' and text[place - 1 : place] != "\\":
            quoted = not quoted
        if not quoted:
            depth += (char == "(") - (char == ")")
        if depth == 0:
            return text[: place + 1] if place else ""
    return ""


def _line(command: str, text: str) -> str:
    return f"{command:<21} = {_MACRO.sub('$(DOLLAR)', text)}"


def _literal(value: Scalar) -> str:
    """A value as an expression."""
    match value:
        case str():
            escaped = value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
            return f'"{escaped}"'
        case Expr() | _:
            return value_text(value)
