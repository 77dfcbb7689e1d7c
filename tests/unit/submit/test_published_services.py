"""Services that a description publishes."""

from pathlib import Path

import pytest

from kettle.submit import SubmitError, expand, parse
from kettle_wire.ads import Ad

from .test_refusals import HEAD, SITE


def submitted(lines: str) -> Ad:
    return expand(parse(f"{HEAD}{lines}\nqueue\n", source="job.sub", cwd=Path("/"), environ={}), SITE).job(0)


def test_services_are_attributes_in_one_form() -> None:
    """Both lists; macros are expanded before they are read, and a job that publishes nothing has neither."""
    ad = submitted(
        'port = 8080\nservices = "web:$(port)/HTTP ,dask:8786/tcp"\nservices_shared_with = group:atlas, bob'
    )
    assert ad["Services"] == "web:8080/http, dask:8786/tcp"
    assert ad["ServicesSharedWith"] == "bob, group:atlas"
    assert not {"Services", "ServicesSharedWith"} & submitted("").keys()


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("services = web:8080", "is no service: write name:port/kind"),
        ("services = web:80/http, web:81/http", "the service web is there twice"),
        ("services_shared_with = *", "is nobody with whom services can be shared"),
    ],
)
def test_what_is_wrong_is_said_with_its_line(line: str, said: str) -> None:
    """Before anything is sent."""
    with pytest.raises(SubmitError, match=said) as error:
        submitted(line)
    assert "job.sub" in str(error.value)
