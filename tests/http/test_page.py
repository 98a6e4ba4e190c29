"""Drawing the tree for people."""

import pytest

from antiphon.http.ops.outline import format_age, rows
from antiphon.ids import ActorPath
from antiphon.supervision.tree import Node


def node(path: str, *children: Node) -> Node:
    return Node(
        path=ActorPath(path),
        kind="worker",
        state="up",
        incarnation=1,
        restarts=0,
        last_exit=None,
        uptime_s=1.0,
        children=children,
    )


def test_rails_lead_to_each_child():
    tree = node("root", node("root/a", node("root/a/b"), node("root/a/c")), node("root/d"))

    assert [row.rails + row.name for row in rows(tree)] == [
        "root",
        "├─ a",
        "│  ├─ b",
        "│  └─ c",
        "└─ d",
    ]


def test_many_children_are_a_number():
    tree = node("root/shard", *(node(f"root/shard/session-{number}") for number in range(40)))

    [row] = rows(tree)

    assert row.hidden == 40


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (None, ""),
        (0.44, "0.4 s"),
        (12, "12 s"),
        (119, "119 s"),
        (180, "3 min"),
        (18_000, "5 h"),
        (180_000, "2 d"),
    ],
)
def test_ages_are_told_as_people_read_them(seconds: float | None, text: str):
    assert format_age(seconds) == text
