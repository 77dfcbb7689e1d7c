"""What a service serves, asked without a bus in between."""

from collections.abc import Iterable
from typing import Any

import msgspec

from kettle.bus.callers import require_caller
from kettle.bus.ports import RefusedError, Rep, Req, Served
from kettle_wire.codes import RefusalCode
from kettle_wire.endpoint import Endpoint
from kettle_wire.identity import Identity


class Endpoints:
    """Endpoints and who answers them: requests and callers are checked as a bus checks them."""

    def __init__(self, served: Iterable[Served[Any, Any]]) -> None:
        self._served = {each.endpoint: each for each in served}

    async def ask(self, endpoint: Endpoint[Req, Rep], request: Req, caller: Identity) -> Rep:
        """The reply, or the RefusedError."""
        served = self._served[endpoint]
        require_caller(served, caller)
        try:
            decoded = endpoint.decode_request(msgspec.msgpack.encode(request))
        except msgspec.ValidationError as error:
            raise RefusedError(RefusalCode.MALFORMED, str(error)) from error
        reply: Rep = await served.handler(decoded, caller)
        return reply
