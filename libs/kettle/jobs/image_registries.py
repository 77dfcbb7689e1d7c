"""
Registries of images that want a login: whose they are, and how the login of a task is called among the tokens of its job.

A login is stored as any credential for jobs is, as `user:secret` in base64; only the starter of a job has it, and no file.  Pure.
"""

from typing import Final

SERVICE: Final = "image_registry"
"""The service under which logins are stored; each has a handle."""
DOCKER: Final = "docker.io"
"""The registry of images that name none."""


def divided(name: str) -> tuple[str, str]:
    """The registry of an image, and what it is called there."""
    host, slash, rest = name.partition("/")
    if slash and ("." in host or ":" in host or host == "localhost"):
        return host, rest
    return DOCKER, name


def token_name(handle: str) -> str:
    """How it is called among the tokens of a job."""
    return f"{SERVICE}_{handle}"


def is_login(token: str) -> bool:
    """Whether a token of a job is a login, which no program is to find."""
    return token == SERVICE or token.startswith(f"{SERVICE}_")
