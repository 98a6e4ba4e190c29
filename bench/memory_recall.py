"""`python -m bench.memory_recall`: whether what somebody said long ago is still in front of the
model: facts that were planted at the beginning of fifty conversations and are asked for at their
end, far beyond the window.

It measures context, not the model: a fact is found where its own words stand in the view of the
question, before it. All parts are the server's own, the real model's vocabulary among them; the
summaries are made of sentences as they were said, since what a model writes is only taken where it
keeps as many facts. Compared with views that only leave out the oldest turns. The same figures each
time, on every machine.
"""

import argparse
import sys
from collections import Counter
from collections.abc import Mapping
from dataclasses import replace

import msgspec
import trio

from antiphon.actors.context.material import material
from antiphon.actors.context.viewing import Means, Viewer
from antiphon.actors.moderation.service import Unmoderated
from antiphon.actors.workers.job import Job
from antiphon.actors.workers.matter import WorkTools
from antiphon.actors.workers.writer import Writer
from antiphon.context_settings import ContextSettings
from antiphon.errors import EngineUnavailable
from antiphon.events import Sampling, Turn
from antiphon.hosts import model_tokenizer
from antiphon.ids import ModelName, NodeId, RequestId
from antiphon.ports import ChatTokenizer
from antiphon.records import Accepted, Item
from antiphon.settings import GenerationSettings, Settings
from antiphon.testing.chat import ScriptedChat
from antiphon.testing.models import prepared_default_model
from antiphon.testing.telemetry import NullTelemetry
from antiphon.testing.work_store import ADA, Talk, WorkStore, an_item
from bench.figure import Figure, at_least, explains, table
from bench.planted import Planted, planted, question

_CONVERSATIONS = 50
_TURNS = 40
"""Of each: several windows."""
_WINDOW = 2048
_ANSWER = 256
_LEAST = 0.9
_NODE = NodeId("node_bench")
_END_MS = 1 << 62
_MODES: Mapping[str, ContextSettings] = {
    "memory and summary": ContextSettings(memory=True),
    "summary alone": ContextSettings(),
    "memory alone": ContextSettings(memory=True, summaries=False),
    "plain truncation": ContextSettings(summaries=False),
}


class Conversation:
    """One that goes on while workers look after it, in a store of its own."""

    def __init__(self, said: Planted, context: ContextSettings, tokenizer: ChatTokenizer) -> None:
        settings = msgspec.structs.replace(
            Settings(),
            context=msgspec.structs.replace(context, titles=False),
            generation=GenerationSettings(default_max_tokens=_ANSWER),
        )
        self._said = said
        self._context = context
        self._tokenizer = tokenizer
        self._store = WorkStore()
        # No model is at hand, so sentences as they were said stand in.
        chat = ScriptedChat(refusal=EngineUnavailable(retry_after_s=1.0))
        self._tools = WorkTools(
            store=self._store,
            writer=Writer(chat, lambda: None),
            moderation=Unmoderated(),
            telemetry=NullTelemetry(),
            settings=lambda: settings,
            now_ms=lambda: 1,
        )

    async def found(self) -> tuple[int, int]:
        """Facts in the view of the question, and tokens of all that was said."""
        talk = self._store.add("conv")
        for turn in self._said.turns:
            self._store.say("conv", turn)
            talk.items[-2:] = map(self._counted, talk.items[-2:])
            await self._work()
        view = await self._view(talk)
        return sum(known in view for known in self._said.wanted), sum(
            item.tokens or 0 for item in talk.items
        )

    async def _work(self) -> None:
        # Whatever the clock says, all that waits is due.
        for work in await self._store.take_work(_NODE, _END_MS, lease_ms=_END_MS):
            done = await Job(work, self._tools, is_patient=False).do()
            await self._store.finish_work(work, _NODE, remembered=done.remembered)

    async def _view(self, talk: Talk) -> str:
        asked = an_item("asked", "user", question())
        after = 0 if talk.summary is None else talk.summary.items
        memories = tuple(self._store.memories) if self._context.memory else ()
        came = Accepted(context=tuple(talk.items[after:]), summary=talk.summary, memories=memories)
        made = material(came=came, input=[asked])
        turn = Turn(
            request=RequestId("bench"),
            model=ModelName("bench"),
            messages=made.messages,
            sampling=Sampling(),
            pieces=made.pieces,
            truncation="auto",
            user=ADA.id,
        )
        means = Means(
            tokenizer=self._tokenizer,
            window=_WINDOW,
            default_max_tokens=_ANSWER,
            threads=trio.CapacityLimiter(1),
        )
        messages, prompt = await Viewer(lambda: self._context).draft(turn, means)
        assert len(prompt) <= _WINDOW - _ANSWER
        return "\n".join(message.content for message in messages[:-1])

    def _counted(self, item: Item) -> Item:
        text = item.body["content"][0]["text"]
        return replace(item, tokens=self._tokenizer.count_text(text))


async def figures(conversations: int) -> list[Figure]:
    tokenizer = model_tokenizer(Settings(), prepared_default_model())
    said = [planted(number, _TURNS) for number in range(conversations)]
    wanted = sum(len(each.wanted) for each in said)
    shares, tokens = {}, 0
    by_language: Counter[str] = Counter()
    for mode, context in _MODES.items():
        found = 0
        for each in said:
            facts, tokens = await Conversation(each, context, tokenizer).found()
            found += facts
            if mode == "memory and summary":
                by_language[each.language] += facts
        shares[mode] = found / wanted
    asked = Counter(each.language for each in said for _ in each.wanted)
    return [
        explains("conversations", conversations),
        explains("tokens said in the last one, against a window of 2,048", tokens),
        explains("facts planted", wanted),
        at_least("in the view, memory and summary", shares["memory and summary"], _LEAST),
        explains("in the view, summary alone", shares["summary alone"]),
        explains("in the view, memory alone", shares["memory alone"]),
        explains("in the view, plain truncation", shares["plain truncation"]),
        *(
            explains(f"in the view, memory and summary, {language}", by_language[language] / count)
            for language, count in asked.items()
        ),
    ]


def main() -> int:
    parser = argparse.ArgumentParser(prog="bench.memory_recall", description=__doc__)
    parser.add_argument("--conversations", type=int, default=_CONVERSATIONS)
    options = parser.parse_args()
    measured = trio.run(figures, options.conversations)
    print(table(measured))
    return 0 if all(figure.holds is not False for figure in measured) else 1


if __name__ == "__main__":
    sys.exit(main())
