"""Messages between startd and starter, cut out of a stream."""

from hypothesis import given
from hypothesis import strategies as st

from kettle.execution.attempts.messages import (
    EndJob,
    MessageReader,
    Renew,
    ToStarter,
    decode_to_starter,
    frame,
)


@given(st.lists(st.integers(1, 20), max_size=20))
def test_messages_arrive_whole_however_the_stream_is_cut(cuts: list[int]) -> None:
    """In order, each once."""
    messages: list[ToStarter] = [Renew(1.5), EndJob(1009, "enough", hard=True), Renew(2.0)]
    stream = b"".join(frame(message) for message in messages)
    frames, at = MessageReader(), 0
    heard: list[ToStarter] = []
    for cut in [*cuts, len(stream)]:
        heard += [decode_to_starter(body) for body in frames.feed(stream[at : at + cut])]
        at += cut

    assert messages == heard
