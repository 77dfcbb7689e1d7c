"""What the queue takes of services of jobs, also when it was written directly."""

from typing import Any

import pytest

from kettle_services.schedd.domain.submission.validation import Unacceptable, check, check_values
from kettle_wire.ads import Expr

AD: dict[str, Any] = {"Cmd": "/bin/true", "JobUniverse": 5}


def test_a_list_of_services_is_taken() -> None:
    """In the ad of all, or of each job."""
    check({**AD, "services": "web:80/http", "ServicesSharedWith": "bob"}, [], [[]], limit=9)
    check(AD, ["Services"], [["web:80/http"], [""]], limit=9)
    check_values({"ServicesSharedWith": ""})


@pytest.mark.parametrize(
    ("ad", "said"),
    [
        ({"Services": "web"}, "write name:port/kind"),
        ({"SERVICES": Expr("strcat(1)")}, "SERVICES is a text, as in web:8080/http, and no expression"),
        ({"ServicesSharedWith": "*"}, "is nobody with whom"),
    ],
)
def test_what_is_no_list_is_refused(ad: dict[str, Any], said: str) -> None:
    """At submission and at an edit, in the same words."""
    with pytest.raises(Unacceptable, match=said):
        check({**AD, **ad}, [], [[]], limit=9)
    with pytest.raises(Unacceptable, match=said):
        check_values(ad)


def test_a_job_of_many_that_is_wrong_is_refused() -> None:
    """Each row is looked at."""
    with pytest.raises(Unacceptable, match="ports are 1 to 65535"):
        check(AD, ["Services"], [["web:80/http"], ["web:0/http"]], limit=9)
