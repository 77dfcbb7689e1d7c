"""
The program that keeps an engine's container open while the job runs in it.

An image may not contain a program that only waits, so Kettle has one: two hundred bytes that need no library.  It opens
the file in its argument (a pipe whose other end its starter holds), blocks all signals, and ends when the pipe does:
with its starter, however that ends.

The machine code is this, as `as` makes it; a test assembles it again:

        mov rdi, [rsp + 16]     # the first argument
        xor esi, esi            # for reading
        mov eax, 2              # open
        syscall
        mov ebx, eax
        push -1                 # all signals
        mov edi, 2              # are blocked
        mov rsi, rsp
        xor edx, edx
        mov r10d, 8
        mov eax, 14             # rt_sigprocmask
        syscall
    again:
        mov edi, ebx
        mov rsi, rsp
        mov edx, 1
        xor eax, eax            # read
        syscall
        test eax, eax
        jg again
        xor edi, edi
        mov eax, 60             # exit
        syscall
"""

import struct
from typing import Final

_CODE: Final = {
    "x86_64": bytes.fromhex(
        "488b7c2410" "31f6" "b802000000" "0f05" "89c3" "6aff" "bf02000000" "4889e6" "31d2" "41ba08000000"
        "b80e000000" "0f05" "89df" "4889e6" "ba01000000" "31c0" "0f05" "85c0" "7fee" "31ff" "b83c000000" "0f05"
    )
}  # fmt: skip
"""By machine, as the kernel names it."""
_ELF_MACHINE: Final = {"x86_64": 62}
_ADDRESS: Final = 0x400000
_HEADERS: Final = 64 + 56


def holder(machine: str) -> bytes | None:
    """An executable file for a machine; None: there is none for it."""
    code = _CODE.get(machine)
    if code is None:
        return None
    size = _HEADERS + len(code)
    elf = struct.pack(
        "<16sHHIQQQIHHHHHH",
        b"\x7fELF\x02\x01\x01",  # 64 bits, the lower byte first
        2, _ELF_MACHINE[machine], 1, _ADDRESS + _HEADERS, 64, 0, 0, 64, 56, 1, 0, 0, 0,
    )  # fmt: skip
    readable_and_executable = 5
    segment = struct.pack("<IIQQQQQQ", 1, readable_and_executable, 0, _ADDRESS, _ADDRESS, size, size, 0x1000)
    return elf + segment + code
