from hypothesis import given
from hypothesis import strategies as st

from antiphon.engine.text import Piece, TextAssembler
from antiphon.engine.vocabulary import Vocabulary
from antiphon.events import Admit, Sampling
from antiphon.ids import EngineRequest, SlotIndex
from antiphon.testing.vocabularies import END, byte_level_vocabulary

TOKENIZER = byte_level_vocabulary()
VOCABULARY = Vocabulary(TOKENIZER)
FULL_STOP = TOKENIZER.token_to_id(".")


def assembler(*stop: str, ends: frozenset[int] = frozenset({END}), **sampling) -> TextAssembler:
    admit = Admit(
        request=EngineRequest(1),
        slot=SlotIndex(0),
        prompt=[1],
        max_tokens=100,
        sampling=Sampling(**sampling),
        stop=list(stop),
    )
    return TextAssembler(admit, VOCABULARY, ends)


def run(text: TextAssembler, tokens: list[int], size: int = 1) -> list[Piece]:
    """Push in groups of `size`, the last one as the end, until stopped."""
    groups = [tokens[start : start + size] for start in range(0, len(tokens), size)] or [[]]
    pieces = []
    for index, group in enumerate(groups):
        last = index == len(groups) - 1
        pieces.append(text.push(group, [-float(token) for token in group], last=last))
        if pieces[-1].stopped:
            break
    return pieces


def joined(pieces: list[Piece]) -> str:
    return "".join(piece.text for piece in pieces)


@given(
    text=st.text(alphabet="hel w.🎉é", max_size=30),
    stops=st.lists(st.text(alphabet="hel w.🎉", min_size=1, max_size=4), max_size=4),
    size=st.integers(1, 7),
)
def test_text_is_cut_at_the_stop_string_however_the_tokens_come(text, stops, size):
    tokens = TOKENIZER.encode(text).ids

    by_one = run(assembler(*stops), tokens)
    by_many = run(assembler(*stops), tokens, size)

    assert joined(by_many) == joined(by_one)
    assert text.startswith(joined(by_one))
    assert not any(stop in joined(by_one) for stop in stops)
    assert by_one[-1].stopped == any(stop in text for stop in stops)


@given(
    text=st.text(alphabet="hel w.🎉é", max_size=30),
    stops=st.lists(st.text(alphabet="hel w.🎉", min_size=1, max_size=4), max_size=2),
    size=st.integers(1, 7),
)
def test_logprob_entries_spell_the_text_that_leaves(text, stops, size):
    pieces = run(assembler(*stops, logprobs=True), TOKENIZER.encode(text).ids, size)

    entries = [entry for piece in pieces for entry in piece.logprobs or []]
    spelled = b"".join(entry.data for entry in entries)
    left = joined(pieces).encode()
    assert spelled.startswith(left)
    # Only a token that a stop string cut in two may say more than left.
    assert len(spelled) - len(left) < max([len(entry.data) for entry in entries], default=1)
    assert bool(entries) == bool(left)


def test_an_entry_carries_the_logprob_of_its_token():
    tokens = TOKENIZER.encode("e.").ids

    pieces = run(assembler(logprobs=True), tokens)

    entries = [entry for piece in pieces for entry in piece.logprobs or []]
    assert [(entry.text, entry.logprob) for entry in entries] == [
        ("e", -float(tokens[0])),
        (".", -float(tokens[1])),
    ]


def test_entries_are_none_unless_asked_for():
    assert run(assembler(), TOKENIZER.encode("e").ids)[0].logprobs is None


def test_an_end_token_counts_and_says_nothing():
    text = assembler(logprobs=True)

    pieces = run(text, [*TOKENIZER.encode("e").ids, END])

    assert joined(pieces) == "e"
    assert text.tokens == 2
    assert pieces[-1].logprobs == []


def test_an_end_token_that_is_no_special_token_says_nothing_either():
    assert joined(run(assembler(ends=frozenset({FULL_STOP})), TOKENIZER.encode("e.").ids)) == "e"


def test_an_ignored_end_token_is_plain_text():
    ends = frozenset({FULL_STOP})

    pieces = run(assembler(ends=ends, ignore_eos=True), TOKENIZER.encode("e.e").ids)

    assert joined(pieces) == "e.e"


def test_text_held_for_a_stop_string_leaves_at_the_end():
    pieces = run(assembler("elder"), TOKENIZER.encode("h el").ids)

    assert joined(pieces) == "h el"


def test_tokens_after_the_stop_string_are_not_counted():
    text = assembler(".")

    run(text, TOKENIZER.encode("h.eee").ids, size=5)

    assert text.tokens == 2


def test_a_stop_string_counts_only_after_the_least_number_of_tokens():
    pieces = run(assembler(".", min_tokens=3), TOKENIZER.encode(".h.e.w").ids)

    assert joined(pieces) == ".h.e"
