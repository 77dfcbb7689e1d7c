"""What a token may say that is made from another."""

import pytest

from kettle_services.iam.domain.refusals import Code, Denied
from kettle_services.iam.domain.scopes import narrowed


def test_nothing_is_added() -> None:
    """Without a wish all that is held is given; one scope too many refuses the whole wish."""
    assert ("a", "b") == narrowed([], ["a", "b"], whose="the token")
    with pytest.raises(Denied) as caught:
        narrowed(["a", "c"], ["a", "b"], whose="the token")
    assert (Code.TOKEN_SCOPE, 400) == (caught.value.code, caught.value.status)
