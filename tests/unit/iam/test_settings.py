"""Settings with which secrets would be sent where others can read them, and others that make no sense."""

import pytest

from kettle_services.iam.settings import IamSettings


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({"url": "http://pool.example"}, "url: .* has to begin with https://"),
        ({"http_host": "0.0.0.0"}, "http_host: .* give certificate"),
        ({"certificate": "c.pem"}, "certificate: .* belong together"),
        ({"workers_account": "A"}, "workers_signing_key: .* belong together"),
    ],
)
def test_what_makes_no_sense_is_refused(settings: dict[str, str], sentence: str) -> None:
    """By the name of the setting."""
    with pytest.raises(ValueError, match=sentence):
        IamSettings(**settings)  # type: ignore[arg-type]


def test_a_proxy_may_have_the_certificate() -> None:
    """Then the address at which it is reached begins with https."""
    assert IamSettings(http_host="0.0.0.0", url="https://pool.example").url
