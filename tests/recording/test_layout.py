"""The layered drawing: users stand below what they read, no two boxes of a layer overlap."""

import random
import xml.etree.ElementTree as ET

import pytest

from minidynamo.recording.layout import boxes, layers
from minidynamo.recording.svg import dot, svg, text


def graph(seed):
    """A random graph in topological order."""
    made = random.Random(seed)
    count = made.randint(0, 30)
    return {
        f"n{i}": [f"n{j}" for j in made.sample(range(i), min(i, made.randint(0, 3)))] for i in range(count)
    }


GRAPHS = [graph(seed) for seed in range(60)]


@pytest.mark.parametrize("inputs", GRAPHS, ids=len)
def test_users_are_below(inputs):
    rows = layers(inputs)
    depth = {name: index for index, row in enumerate(rows) for name in row}
    assert sorted(depth) == sorted(inputs)
    assert all(depth[source] < depth[name] for name, sources in inputs.items() for source in sources)


@pytest.mark.parametrize("inputs", GRAPHS, ids=len)
def test_boxes_do_not_overlap(inputs):
    placed, width, _ = boxes(inputs, dict.fromkeys(inputs, 10.0), 5.0, 2.0, 9.0)
    assert placed.keys() == inputs.keys()
    rows: dict[float, list[float]] = {}
    for box in placed.values():
        assert box.width / 2 - 1e-6 <= box.x <= width - box.width / 2 + 1e-6
        rows.setdefault(box.y, []).append(box.x)
    for row in rows.values():
        row.sort()
        assert all(b - a >= 12.0 - 1e-6 for a, b in zip(row, row[1:]))


NODES = [
    {"name": "x", "op": "placeholder", "target": "x", "inputs": [], "args": ""},
    {"name": "mul", "op": "call_function", "target": "mul", "inputs": ["x"], "args": 'x, "<&>"'},
    {"name": "output", "op": "output", "target": "output", "inputs": ["mul"], "args": "(mul,)"},
]


def test_svg_is_xml_with_a_box_per_node_and_a_path_per_edge():
    root = ET.fromstring(svg(NODES, "a < b"))
    tags = [element.tag.rpartition("}")[2] for element in root.iter()]
    assert (tags.count("rect"), tags.count("path")) == (3, 2)


def test_dot_and_text():
    assert '"x" -> "mul";' in dot(NODES) and text(NODES).splitlines()[1] == 'mul    = mul(x, "<&>")'


def test_an_empty_graph():
    assert ET.fromstring(svg([])) is not None
