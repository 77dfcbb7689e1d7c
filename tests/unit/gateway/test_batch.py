from hypothesis import given
from hypothesis import strategies as st

from kettle.bus.ports import Post
from kettle_services.gateway.domain import batch
from kettle_services.gateway.domain.batch import Batch, Mark, Piece, marks_of, note_of, pieces
from kettle_services.gateway.domain.owner_cache import Owners


def posts(sizes: list[int]) -> list[Post]:
    return [Post(f"s.{number}", b"x" * size) for number, size in enumerate(sizes)]


@given(st.lists(st.integers(1, batch.BYTES), min_size=1, max_size=20), st.integers(20, 10**6))
def test_a_frame_is_told_in_parts_that_fit(sizes: list[int], last: int) -> None:
    """
    Parts follow one another, each fits into a batch or is a single message, and the last one ends the frame.
    """
    made = posts(sizes)
    first = last - len(made) + 1
    parts = pieces("s", 1, 7, [(first + number, post) for number, post in enumerate(made)])
    assert made == [post for part in parts for post in part.posts]
    assert Mark(7, last, 1) == parts[-1].mark
    position = last - len(made)
    for part in parts:
        position += len(part.posts)
        assert Mark(7, position, 1) == part.mark
        assert 1 == len(part.posts) or sum(len(post.data) for post in part.posts) <= batch.BYTES


def test_no_part_has_more_messages_than_the_server_takes() -> None:
    """A thousand at once is the limit of the server."""
    made = list(enumerate(posts([1] * 2500), 1))
    assert [1000, 1000, 500] == [len(part.posts) for part in pieces("s", 1, 1, made)]


def test_what_was_recorded_at_once_is_told_at_once() -> None:
    """Of 400 messages at each position three do not fit together, and none of them is cut."""
    made = [(number // 400 + 1, post) for number, post in enumerate(posts([1] * 2000))]
    parts = pieces("s", 1, 1, made)
    assert [(800, 2), (800, 4), (400, 5)] == [(len(part.posts), part.mark.position) for part in parts]


@given(
    st.dictionaries(
        st.text(st.characters(exclude_categories=["Cs"])), st.tuples(*[st.integers(0, 2**62)] * 3)
    )
)
def test_marks_are_read_back(raw: dict[str, tuple[int, int, int]]) -> None:
    """Whatever a shard is called, the note is printable ASCII and says what was put into it."""
    marks = {shard: Mark(*numbers) for shard, numbers in raw.items()}
    note = note_of(marks)
    assert note.isascii()
    assert note.isprintable()
    assert marks == marks_of(note)


def test_no_note_means_no_marks() -> None:
    """A stream that is new has told nothing."""
    assert {} == marks_of("")


def test_a_batch_takes_what_fits() -> None:
    """The first piece always fits; then messages and bytes are counted."""
    load = Batch()
    huge = Piece("a", Mark(1, 1, 1), posts([batch.BYTES + 1]))
    assert load.has_room(huge)
    load.add(huge)
    assert not load.has_room(Piece("a", Mark(2, 2, 1), posts([1])))
    load = Batch()
    load.add(Piece("a", Mark(1, 999, 1), posts([1] * 999)))
    assert load.has_room(Piece("b", Mark(1, 1, 1), posts([1])))
    assert not load.has_room(Piece("b", Mark(1, 2, 1), posts([1, 1])))


def test_a_batch_has_the_last_mark_of_each_shard() -> None:
    """Pieces of one shard overwrite each other's marks, those of others do not."""
    load = Batch()
    for shard, number in (("a", 1), ("b", 5), ("a", 2)):
        load.add(Piece(shard, Mark(number, number, 1), posts([1])))
    assert {"a": Mark(2, 2, 1), "b": Mark(5, 5, 1)} == load.marks


def test_owners_are_bounded_and_forget_the_least_used() -> None:
    """Memory does not grow with the number of clusters, and who is asked for stays."""
    owners = Owners(2)
    owners.put("s", 1, "a")
    owners.put("s", 2, "b")
    assert "a" == owners.get("s", 1)
    owners.put("s", 3, "c")
    assert (2, None, "a", "c") == (len(owners), owners.get("s", 2), owners.get("s", 1), owners.get("s", 3))


def test_clusters_of_two_schedds_are_two() -> None:
    """A number of a cluster means something inside its schedd only."""
    owners = Owners(10)
    owners.put("schedd.a", 1, "alice")
    assert owners.get("schedd.b", 1) is None
