"""What is known of a request before anybody looks at what it asks."""

import pytest
from aiohttp.test_utils import make_mocked_request
from multidict import CIMultiDict

from kettle.http.requests import client_address


class Transport:
    """Knows whose connection it is."""

    def get_extra_info(self, name: str, default: object = None) -> object:
        return ("10.0.0.1", 4711) if name == "peername" else default


@pytest.mark.parametrize("separate", [False, True])
def test_what_a_client_says_of_itself_does_not_hide_what_the_proxy_says(*, separate: bool) -> None:
    """
    The last address is that of the proxy, whether it was added to the client's line or as a line of its own; of a stranger none counts.
    """
    lines = ["8.8.8.8", "192.0.2.7"] if separate else ["8.8.8.8, 192.0.2.7"]
    headers = CIMultiDict(("X-Forwarded-For", line) for line in lines)
    request = make_mocked_request("GET", "/", headers=headers, transport=Transport())
    assert "192.0.2.7" == client_address(request, {"10.0.0.1"})
    assert "10.0.0.1" == client_address(request, ())
