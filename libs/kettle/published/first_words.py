"""
What a program says before TLS begins: nothing, or that it speaks PostgreSQL, whose clients ask first whether there is TLS. Pure.

    length 8, 80877104   is there GSSAPI?  answered N: no
    length 8, 80877103   is there TLS?     answered S: yes, and TLS begins
"""

import struct
from typing import Final

_QUESTION: Final = struct.Struct(">II")
TLS_QUESTION: Final = _QUESTION.pack(_QUESTION.size, 80877103)
GSS_QUESTION: Final = _QUESTION.pack(_QUESTION.size, 80877104)
_NO: Final = b"N"
_YES: Final = b"S"


class FirstWordsError(ConnectionError):
    """What comes first is no beginning of TLS; the message is a sentence."""


class FirstWords:
    """Of one connection; `over` when TLS has begun."""

    def __init__(self) -> None:
        self.over = False
        self._data = b""
        self._gss_asked = False

    def hear(self, data: bytes) -> tuple[bytes, bytes]:
        """
        What is answered, and what of it belongs to TLS.

        Raises FirstWordsError: more came than was asked for, or something else.  What stands behind a question was written by somebody who
        could not know the answer, and would be taken for the client's own word.
        """
        self._data += data
        if self._data[:1] != TLS_QUESTION[:1]:
            return self._begun(b"")
        if len(self._data) < _QUESTION.size:
            return b"", b""
        if len(self._data) > _QUESTION.size:
            raise FirstWordsError("something comes behind a question before that is answered")
        if self._data == TLS_QUESTION:
            self._data = b""
            return self._begun(_YES)
        if self._data != GSS_QUESTION or self._gss_asked:
            raise FirstWordsError("what comes first is no beginning of TLS")
        self._gss_asked, self._data = True, b""
        return _NO, b""

    def _begun(self, answer: bytes) -> tuple[bytes, bytes]:
        self.over = True
        rest, self._data = self._data, b""
        return answer, rest
