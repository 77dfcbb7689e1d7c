"""What is decided about values that people keep."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kettle_services.iam.domain.kept_values import (
    NONE,
    KeptValues,
    decide_removal,
    decide_set,
    fold_values,
    found,
)
from kettle_services.iam.domain.refusals import Denied
from kettle_wire.commands.key_values import LARGEST_VALUE, MOST_KEPT, MOST_KEYS, RemoveValues, SetValue

KEYS = st.sampled_from(["a", "ab", "a/b", "b"])
VALUES = st.binary(max_size=3)
COMMANDS = st.lists(
    st.one_of(
        st.builds(SetValue, id=st.just("1"), key=KEYS, value=VALUES, expected=st.none() | VALUES),
        st.builds(RemoveValues, id=st.just("1"), key=KEYS, prefix=st.booleans()),
    )
)


def after(kept: KeptValues, command: SetValue | RemoveValues) -> KeptValues:
    decide = decide_set if isinstance(command, SetValue) else decide_removal
    for event in decide(kept, command, owner="ada", now=0.0):  # type: ignore[arg-type]
        kept = fold_values(kept, event) or NONE
    return kept


@given(COMMANDS)
def test_values_are_as_in_a_dictionary(commands: list[SetValue | RemoveValues]) -> None:
    """Whatever is set and removed in which order, what is kept is what a dictionary would have."""
    kept, model = NONE, dict[str, bytes]()
    for command in commands:
        match command:
            case SetValue(key=key, value=value, expected=expected):
                if expected is not None and model.get(key) != expected:
                    with pytest.raises(Denied, match="nothing was replaced"):
                        after(kept, command)
                    continue
                model[key] = value
            case RemoveValues(key=key, prefix=False):
                if key not in model:
                    with pytest.raises(Denied, match="no value"):
                        after(kept, command)
                    continue
                del model[key]
            case RemoveValues(key=key):
                model = {each: value for each, value in model.items() if not each.startswith(key)}
        kept = after(kept, command)
        assert model == dict(kept.values)


def test_what_is_replaced_does_not_count() -> None:
    """Somebody who has as much as may be can still replace a value by one of the same size."""
    full = KeptValues(
        {f"{number:04}": bytes(LARGEST_VALUE - 4) for number in range(MOST_KEPT // LARGEST_VALUE)}
    )
    assert MOST_KEPT == full.size
    assert full.size == after(full, SetValue(id="1", key="0000", value=b"x" * (LARGEST_VALUE - 4))).size
    with pytest.raises(Denied, match="together"):
        after(full, SetValue(id="1", key="0000", value=bytes(LARGEST_VALUE - 3)))
    with pytest.raises(Denied, match="together"):
        after(full, SetValue(id="1", key="1", value=b""))


def test_a_repeat_records_nothing() -> None:
    """Who sets what is there already changes nothing."""
    kept = KeptValues({"a": b"1"})
    assert [] == decide_set(kept, SetValue(id="1", key="a", value=b"1"), owner="ada", now=0.0)
    assert b"1" == found(kept, "a")


def test_nobody_has_more_keys_than_are_soon_looked_at() -> None:
    """Small values are no way to keep iam busy; one that is there can still be set."""
    full = KeptValues({f"{number}": b"" for number in range(MOST_KEYS)})
    with pytest.raises(Denied, match="4,096 keys"):
        after(full, SetValue(id="1", key="more", value=b""))
    assert b"x" == after(full, SetValue(id="1", key="0", value=b"x")).values["0"]
