import pytest

from antiphon.engine.slots import SlotTable
from antiphon.engine.text import TextAssembler
from antiphon.engine.vocabulary import Vocabulary
from antiphon.errors import HostProtocolError
from antiphon.events import Abort, Admit, EndReason, Released, Sampling
from antiphon.ids import EngineRequest, SlotIndex
from antiphon.testing.vocabularies import byte_level_vocabulary

VOCABULARY = Vocabulary(byte_level_vocabulary())


def admit_to(table: SlotTable, request: int, slot: int):
    admit = Admit(
        request=EngineRequest(request),
        slot=SlotIndex(slot),
        prompt=[1],
        max_tokens=4,
        sampling=Sampling(),
        stop=[],
    )
    return table.admit(admit, TextAssembler(admit, VOCABULARY, frozenset()))


def abort(request: int, slot: int) -> Abort:
    return Abort(request=EngineRequest(request), slot=SlotIndex(slot))


def test_a_released_slot_can_be_admitted_to_again():
    table = SlotTable(2)

    released = table.release(admit_to(table, 1, 1), EndReason.STOP)

    assert released == Released(
        slot=SlotIndex(1), request=EngineRequest(1), reason=EndReason.STOP, tokens=0
    )
    assert admit_to(table, 2, 1).request == 2
    assert len(table) == 1


def test_an_occupied_slot_takes_nobody_else():
    table = SlotTable(2)
    admit_to(table, 1, 0)

    with pytest.raises(HostProtocolError, match="held by request 1"):
        admit_to(table, 2, 0)


@pytest.mark.parametrize("slot", [-1, 2])
def test_a_slot_that_does_not_exist_is_a_breach(slot: int):
    table = SlotTable(2)

    with pytest.raises(HostProtocolError, match="no slot"):
        admit_to(table, 1, slot)
    with pytest.raises(HostProtocolError, match="no slot"):
        table.abort(abort(1, slot))


def test_a_request_is_admitted_once_in_its_life():
    table = SlotTable(2)
    slot = admit_to(table, 1, 0)

    with pytest.raises(HostProtocolError, match="admitted before"):
        admit_to(table, 1, 1)
    table.release(slot, EndReason.STOP)
    with pytest.raises(HostProtocolError, match="admitted before"):
        admit_to(table, 1, 1)


def test_an_abort_is_legal_before_during_and_after():
    table = SlotTable(2)
    assert table.abort(abort(1, 0)) is None
    slot = admit_to(table, 1, 0)

    assert table.abort(abort(1, 0)) is slot
    assert slot.end is EndReason.CANCELLED
    assert table.abort(abort(1, 0)) is None
    table.release(slot, EndReason.CANCELLED)
    assert table.abort(abort(1, 0)) is None


def test_an_abort_after_the_end_does_not_change_how_it_ended():
    table = SlotTable(1)
    slot = admit_to(table, 1, 0)
    slot.end = EndReason.STOP

    assert table.abort(abort(1, 0)) is None

    assert slot.end is EndReason.STOP


def test_a_late_abort_does_not_hit_the_next_holder_of_the_slot():
    table = SlotTable(1)
    table.release(admit_to(table, 1, 0), EndReason.STOP)
    slot = admit_to(table, 2, 0)

    assert table.abort(abort(1, 0)) is None

    assert slot.end is None


def test_the_memory_of_ended_requests_is_bounded():
    table = SlotTable(1)

    for request in range(10_000):
        table.release(admit_to(table, request, 0), EndReason.STOP)

    assert len(table._ended) < 5_000
