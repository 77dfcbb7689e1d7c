"""How long a test waits for what must come."""

from typing import Final

PATIENCE_S: Final = 60.0
"""
A bound for what never comes, not for what is slow: on a machine with much else to do all takes many times as long as alone.
What waits this long ends by an event, so a longer wait costs nothing where all is well.
"""
