"""What is wrong with a document, as it is told to people and programs."""

import msgspec


class Fault(msgspec.Struct, frozen=True, gc=False):
    """One thing that is wrong, or worth a warning."""

    pointer: str
    """Where, as a JSON pointer; empty: in the document as a whole."""
    sentence: str
    """Without a full stop at its end."""
