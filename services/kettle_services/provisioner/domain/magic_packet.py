"""What a network card hears while its machine sleeps (Wake-on-LAN)."""

from typing import Final

PORT: Final = 9
_BEGINNING: Final = b"\xff" * 6
_TIMES: Final = 16


def magic_packet(mac: str) -> bytes:
    """
    The packet that wakes the machine with a hardware address, which is six pairs of hexadecimal digits with colons.
    """
    return _BEGINNING + bytes.fromhex(mac.replace(":", "")) * _TIMES
