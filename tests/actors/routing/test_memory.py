"""Where conversations were answered last."""

from antiphon.actors.routing.memory import Memory
from antiphon.actors.routing.route import Stay


def test_a_conversation_is_remembered_until_its_prefix_must_be_gone():
    memory = Memory()
    memory.note("c", Stay(model="m"), 0.0)

    assert memory.last("c", 1800.0) == Stay(model="m")
    assert memory.last("c", 1801.0) is None
    assert memory.last("other", 0.0) is None


def test_the_longest_unheard_of_is_forgotten_first():
    memory = Memory(size=2)
    for name in ("a", "b", "a", "c"):
        memory.note(name, Stay(model=name), 0.0)

    assert [memory.last(name, 0.0) is None for name in ("a", "b", "c")] == [False, True, False]
    assert len(memory) == 2
