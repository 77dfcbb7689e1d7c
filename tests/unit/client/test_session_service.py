"""A pool in which nobody answers about sessions."""

from types import SimpleNamespace
from typing import Any

import pytest

from kettle.client.errors import PoolUnreachableError
from kettle.client.sessions import NoSessionServiceError, SessionClient


class Silence:
    """Asks, and gets no answer."""

    transport = SimpleNamespace(patience=1.0)

    async def ask(self, *_: object, **__: object) -> None:
        raise PoolUnreachableError("the certificate of the server is over")


async def test_why_nobody_answered_is_told_with_what_to_do() -> None:
    """That there is no such service is one reason of several."""
    silence: Any = Silence()
    with pytest.raises(
        NoSessionServiceError, match=r"certificate of the server is over.*daemon_list of \[master\]"
    ):
        await SessionClient(silence).list()
