"""Answers of the real model that are taken out of the pipeline and put back by a host's runtime."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from tokenizers import Tokenizer

from antiphon.engine.config import HostConfig
from antiphon.engine.openvino.engine import OpenVinoEngine
from antiphon.engine.openvino.kv import BLOCK_TOKENS
from antiphon.engine.openvino.schemas import SchemaVerdict
from antiphon.engine.runtime import HostRuntime
from antiphon.engine.vocabulary import Vocabulary
from antiphon.events import (
    Admit,
    EndReason,
    Fault,
    Pause,
    Released,
    Resume,
    Sampling,
    SlotText,
    Step,
)
from antiphon.ids import EngineRequest, SlotIndex
from antiphon.testing.reciting import ListChannel

pytestmark = pytest.mark.engine

END_OF_TURN = 2
STEP_TOKENS = 64
SLOT = SlotIndex(0)
SEA = "Tell me about the sea."
EMOJI = "Answer only with emoji: 🥳🚀🎉🥳🚀🎉"

PauseAfter = Callable[[SlotText], bool]


@dataclass
class Told:
    """All that was said of one answer, which may have been paused many times."""

    text: str = ""
    pauses: int = 0
    pieces: list[SlotText] = field(default_factory=list)
    faults: list[Fault] = field(default_factory=list)
    released: Released | None = None
    prefilled: list[int] = field(default_factory=list)
    """Of the steps that computed something of a prompt."""


class Host:
    def __init__(self, model_dir: Path) -> None:
        config = HostConfig(
            model_dir=model_dir,
            slots=2,
            window=2048,
            stop_token_ids=(END_OF_TURN,),
            kv_cache_mib=64,
            step_tokens=STEP_TOKENS,
        )
        self.tokenizer = Tokenizer.from_file(str(model_dir / "tokenizer.json"))
        self.engine = OpenVinoEngine(config)
        self._channel = ListChannel()
        self._runtime = HostRuntime(
            self.engine, Vocabulary(self.tokenizer), self._channel, frozenset({END_OF_TURN})
        )
        self._requests = 0

    def prompt(self, question: str) -> list[int]:
        text = f"<|im_start|>user\n{question}<|im_end|>\n<|im_start|>assistant\n"
        return self.tokenizer.encode(text).ids

    def ask(
        self,
        question: str,
        pause_after: PauseAfter = lambda text: False,
        *,
        max_tokens: int = 40,
        stop: tuple[str, ...] = (),
        **sampling: Any,
    ) -> Told:
        """Until its end; each pause is followed by a resume at once."""
        self._requests += 1
        request = EngineRequest(self._requests)
        told = Told()
        admit = Admit(
            request=request,
            slot=SLOT,
            prompt=self.prompt(question),
            max_tokens=max_tokens,
            sampling=Sampling(**{"temperature": 0, **sampling}),
            stop=list(stop),
        )
        self._channel.commands.append(admit)
        while told.released is None:
            self._runtime.turn()
            frames, self._channel.frames = self._channel.frames, []
            for frame in frames:
                match frame:
                    case Step():
                        told.prefilled += [frame.prefilled] if frame.prefilled else []
                        for text in frame.texts:
                            told.text += text.text
                            told.pieces.append(text)
                            if pause_after(text):
                                self._channel.commands.append(Pause(request=request, slot=SLOT))
                    case Released(reason=EndReason.PAUSED):
                        told.pauses += 1
                        self._channel.commands.append(Resume(request=request, slot=SLOT))
                    case Released():
                        told.released = frame
                    case Fault():
                        told.faults.append(frame)
        return told


@pytest.fixture(name="host", scope="module")
def _host(model_dir: Path) -> Iterator[Host]:
    host = Host(model_dir)
    yield host
    assert host.engine._blocks_left == host.engine.capabilities.kv_blocks
    host.engine.close()


def same_beginning(text: str, other: str) -> int:
    pairs = zip(text, other, strict=False)
    return next((index for index, (a, b) in enumerate(pairs) if a != b), min(len(text), len(other)))


def test_an_answer_paused_in_the_middle_of_its_emoji_shows_no_seam(host: Host):
    whole = host.ask(EMOJI)

    paused = host.ask(EMOJI, lambda text: text.text == "")

    assert paused.pauses > 10  # several tokens make an emoji, so there were many such moments
    assert "\N{REPLACEMENT CHARACTER}" not in paused.text
    assert [piece.tokens for piece in paused.pieces] == list(range(1, 41))
    # What is computed again may differ in its last bits, and so may a word further on.
    assert same_beginning(paused.text, whole.text) >= 5
    assert (paused.released.reason, paused.released.tokens) == (EndReason.LENGTH, 40)


def test_a_stop_string_is_cut_at_the_same_place_whenever_it_is_paused(host: Host):
    whole = host.ask(SEA).text
    stop = whole[20:34]
    cut = host.ask(SEA, stop=(stop,))
    assert cut.text == whole[: whole.index(stop)]

    paused = host.ask(SEA, lambda text: True, stop=(stop,))

    assert paused.pauses == paused.released.tokens - 1
    assert paused.text == cut.text
    assert paused.pieces[-1].end is EndReason.STOP
    assert paused.released.tokens == cut.released.tokens


def test_a_drawn_answer_does_not_repeat_itself_after_each_pause(host: Host):
    sampling = {"temperature": 1.0, "seed": 7, "logprobs": True, "min_tokens": 30}

    paused = host.ask(SEA, lambda text: text.tokens % 4 == 0, **sampling)

    pieces = [piece.text for piece in paused.pieces]
    assert paused.pauses >= 7
    assert len({"".join(pieces[index : index + 4]) for index in range(0, 28, 4)}) == 7
    spelled = b"".join(entry.data for piece in paused.pieces for entry in piece.logprobs or [])
    assert spelled.decode() == paused.text
    assert paused.released.tokens >= 30


def test_a_schema_can_not_go_on_and_says_so(host: Host, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(host.engine._schemas, "verdict", lambda schema: SchemaVerdict(None))

    told = host.ask(
        "Name a city.",
        lambda text: text.tokens == 2,
        json_schema='{"type": "object", "properties": {"city": {"type": "string"}}}',
    )

    assert [fault.code for fault in told.faults] == ["engine_error"]
    assert told.released.reason is EndReason.FAILED
    assert host.ask(SEA).faults == []


def test_what_a_step_computed_of_a_prompt_is_told_and_a_cached_prompt_costs_little(host: Host):
    question = "In the beginning " * 40
    tokens = len(host.prompt(question))

    cold = host.ask(question, max_tokens=4)
    warm = host.ask(question, max_tokens=4)
    resumed = host.ask(f"{question}again", lambda text: text.tokens == 3, max_tokens=6)

    # The last one of the cold steps gives the first token, and so on: they are as many as told.
    assert cold.prefilled == [STEP_TOKENS] * (tokens // STEP_TOKENS) + [tokens % STEP_TOKENS]
    assert [piece.tokens for piece in cold.pieces] == [1, 2, 3, 4]
    assert len(warm.prefilled) == 1
    assert warm.prefilled[0] <= BLOCK_TOKENS
    assert resumed.pauses == 1
    assert len(resumed.prefilled) == 2
    assert resumed.prefilled[1] <= BLOCK_TOKENS
    # Told once, with the first text, and not of what the answer itself had computed.
    assert [piece.cached_tokens for piece in cold.pieces] == [0, None, None, None]
    assert warm.pieces[0].cached_tokens == tokens - warm.prefilled[0]
    cached = [piece.cached_tokens for piece in resumed.pieces]
    assert cached[0] == len(host.prompt(f"{question}again")) - resumed.prefilled[0]
    assert set(cached[1:]) == {None}
