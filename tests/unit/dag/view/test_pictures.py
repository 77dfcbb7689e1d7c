"""Graphs as pictures: what is folded, what stays, and that nothing of a name gets out of its place."""

from collections import Counter
from xml.etree import ElementTree as ET

from hypothesis import given, settings
from hypothesis import strategies as st

from kettle.dag.building.parser import parse
from kettle.dag.plan import plan_of
from kettle.dag.view.drawing import dot, svg
from kettle.dag.view.figures import HIGH, WIDE, Arrow, picture
from kettle.dag.view.layers import placed
from kettle_wire.codes import NodeState
from kettle_wire.workflows import Plan


def plan(text: str) -> Plan:
    return plan_of(parse(["x.dag"], lambda _: text))


def jobs(*names: str) -> str:
    return "".join(f"JOB {name} x.sub\n" for name in names)


DIAMOND = jobs("A", "B", "C", "D") + "PARENT A CHILD B C\nPARENT B C CHILD D\n"


def test_a_small_graph_stays_as_it_is() -> None:
    """Four nodes are four figures in three levels, with the arrows of the edges."""
    made = picture(plan(DIAMOND), "auto")
    assert ["A", "B", "C", "D"] == [each.name for each in made.figures]
    assert [0, 1, 1, 2] == [each.level for each in made.figures]
    assert {Arrow(0, 1), Arrow(0, 2), Arrow(1, 3), Arrow(2, 3)} == set(made.arrows)


def test_ten_thousand_nodes_stay_a_picture() -> None:
    """
    Five thousand chains of two between a first and a last node are four figures; a chain of ten thousand is as high as a screen
    allows.
    """
    names = [f"n{each}" for each in range(5000)], [f"m{each}" for each in range(5000)]
    text = jobs("A", *names[0], *names[1], "Z") + f"PARENT A CHILD {' '.join(names[0])}\n"
    text += "".join(f"PARENT n{each} CHILD m{each}\n" for each in range(5000))
    made = picture(plan(text + f"PARENT {' '.join(names[1])} CHILD Z\n"), "auto")
    assert [("A", 1), ("n…", 5000), ("m…", 5000), ("Z", 1)] == [
        (each.name, each.nodes) for each in made.figures
    ]
    assert {Arrow(0, 1), Arrow(1, 2), Arrow(2, 3)} == set(made.arrows)

    chain = jobs(*names[0]) + "".join(f"PARENT n{each} CHILD n{each + 1}\n" for each in range(4999))
    made = picture(plan(chain), "auto")
    assert len(made.figures) <= HIGH
    assert 5000 == sum(each.nodes for each in made.figures)


def test_instances_of_one_job_and_splices_are_one_figure() -> None:
    """Names tell what belongs together; unfolded each is a figure of its own."""
    made = picture(Plan(names=["w/fit/0", "w/fit/1", "s+a", "s+b", "w/end"]), "groups")
    assert [("w/fit", "group", 2), ("s", "group", 2), ("w/end", "job", 1)] == [
        (each.name, each.kind, each.nodes) for each in made.figures
    ]
    assert 5 == len(picture(Plan(names=["w/fit/0", "w/fit/1", "s+a", "s+b", "w/end"]), "none").figures)


@settings(max_examples=25)
@given(st.integers(1, 60), st.integers(0, 400), st.randoms(use_true_random=False))
def test_each_node_is_in_one_figure_and_no_level_is_too_wide(nodes: int, edges: int, rng: object) -> None:
    """
    Whatever the graph: all nodes are counted once, arrows lead down, and figures of a level do not lie on each other.
    """
    text = jobs(*(f"n{each}" for each in range(nodes)))
    for _ in range(edges if nodes > 1 else 0):
        first, second = sorted(rng.sample(range(nodes), 2))  # type: ignore[attr-defined]
        text += f"PARENT n{first} CHILD n{second}\n"
    made = picture(plan(text), "auto")
    assert nodes == sum(each.nodes for each in made.figures) == len(made.figure_of)
    assert max(Counter(each.level for each in made.figures).values()) <= WIDE
    assert all(made.figures[each.parent].level < made.figures[each.child].level for each in made.arrows)
    places = placed(made)
    assert len(set(places.corners)) == len(made.figures)
    assert all(0 <= x < places.width and 0 <= y < places.height for x, y in places.corners)


@given(st.text(st.characters(exclude_categories=["Cs", "Cc"]), min_size=1, max_size=30))
def test_names_stay_in_their_place(name: str) -> None:
    """A picture is XML with the name as a text, and a line for Graphviz has it in quotes."""
    made = picture(Plan(names=[name]), "none")
    counts = made.counts(bytes([NodeState.FAILED]))
    root = ET.fromstring(svg(made, placed(made), counts, link=lambda figure: f"/x?figure={figure}&y"))
    [title] = [each.text for each in root.iter("{http://www.w3.org/2000/svg}title")]
    assert f"{name}: failed" == title
    [link] = root.iter("{http://www.w3.org/2000/svg}a")
    assert "/x?figure=0&y" == link.get("href")
    lines = list(dot(made, counts, "x"))
    assert 4 == len(lines)
    assert lines[2].replace("\\\\", "").replace('\\"', "").count('"') == 4
