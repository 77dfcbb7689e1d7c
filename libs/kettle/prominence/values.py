"""Values of documents as the text that programs get."""

from typing import Final

from kettle_wire.prominence.values import Value

_WHOLE: Final = 2.0**53


def text_of_value(value: Value) -> str:
    """The text of a value: whole numbers without a decimal point, true and false as in JSON."""
    match value:
        case bool():
            return "true" if value else "false"
        case float() if value.is_integer() and abs(value) < _WHOLE:
            return str(int(value))
        case _:
            return str(value)
