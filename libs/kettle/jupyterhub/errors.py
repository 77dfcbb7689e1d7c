"""
What goes wrong between a hub and its pool.

    HubError
    ├── GatewayUnreachableError   nobody knows anything: a server is never taken for gone because of it
    ├── GatewayRefusedError       the gateway says no, with a code and a sentence
    ├── NoTokenError              the hub cannot act in the name of this person
    └── ServerFailedError         the server does not come up, or is not what was asked for

Each has one sentence for the person, which the hub shows on its page.
"""

from typing import Final


class HubError(Exception):
    """`jupyterhub_message` is what JupyterHub shows of it."""

    def __init__(self, sentence: str) -> None:
        super().__init__(sentence)
        self.jupyterhub_message: Final = sentence


class GatewayUnreachableError(HubError):
    """The gateway does not answer, or not now."""


class GatewayRefusedError(HubError):
    """The gateway does not do what was asked for."""

    def __init__(self, status: int, code: str, sentence: str) -> None:
        super().__init__(sentence)
        self.status: Final = status
        self.code: Final = code


class NoTokenError(HubError):
    """There is no token of this person, or none that is good."""


class ServerFailedError(HubError):
    """A server has not come up."""
