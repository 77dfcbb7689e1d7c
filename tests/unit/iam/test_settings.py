"""Settings with which secrets would be sent where others can read them, and others that make no sense."""

import pytest

from kettle_services.iam.commands.tokens import longest_life
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


@pytest.mark.parametrize(
    ("settings", "least"),
    [
        ({"job_token_lifetime": 7200, "idtoken_lifetime": 60.0}, 7200.0),
        ({"access_token_lifetime": 9000.0, "idtoken_lifetime": 60.0}, 9000.0),
        ({"idtoken_lifetime": 1e6}, 1e6),
        ({"idtoken_lifetime": 0.0}, 1e9),
        ({"idtoken_lifetime": 60.0, "issuers": {"https://other.example": ()}}, 86_400.0),
    ],
)
def test_a_withdrawal_is_remembered_as_long_as_any_token_lives(
    settings: dict[str, object], least: float
) -> None:
    """Of whatever kind it is: its id does not say that."""
    assert longest_life(IamSettings(**settings)) >= least  # type: ignore[arg-type]
