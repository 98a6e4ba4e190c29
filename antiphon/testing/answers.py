"""Responses over a scripted engine and a store in memory: their directory, recorder and reaper."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from typing import Any

import trio

from antiphon.actors.responses.directory import RunDirectory
from antiphon.actors.responses.reaper import Reaper
from antiphon.actors.responses.recorder import Recorder
from antiphon.actors.responses.run import RunTools
from antiphon.ids import LOCAL_USER, ItemId, NodeId, ResponseId
from antiphon.narration import Ended, ResponseEvent, TextAdded, Watcher, decode_events
from antiphon.ports import NewAnswer
from antiphon.records import Item, Response, ResponseKind, ResponseStatus
from antiphon.settings import Settings
from antiphon.supervision.spec import ChildSpec, Restart
from antiphon.testing.contents import NoContents
from antiphon.testing.rig import MODEL, Rig, a_turn, running_rig
from antiphon.testing.scripted import ScriptedLauncher, ScriptedLink
from antiphon.testing.turn_store import TurnStore

NODE = NodeId("node_here")


@dataclass(slots=True, kw_only=True)
class AnswerRig:
    """What runs, and the store under it."""

    rig: Rig
    store: TurnStore
    runs: RunDirectory
    tools: RunTools

    async def create(self, name: str, **fields: Any) -> Watcher:
        return await self.runs.create(an_answer(name, **fields))


def a_response(name: str, **fields: Any) -> Response:
    """In progress, for LOCAL_USER."""
    response = Response(
        id=ResponseId(name),
        user=LOCAL_USER,
        kind=ResponseKind.RESPONSE,
        model=MODEL,
        status=ResponseStatus.IN_PROGRESS,
        created_ms=1,
        request={},
    )
    return replace(response, **fields)


def an_answer(name: str, *, text: str = "hello there", **fields: Any) -> NewAnswer:
    """A request of one short message; `fields` go to the request, the response or the turn."""
    parts: dict[type, dict[str, Any]] = {NewAnswer: {}, Response: {}}
    turn_fields = fields.pop("turn", {})
    for key, value in fields.items():
        parts[NewAnswer if key in NewAnswer.__slots__ else Response][key] = value
    response = a_response(name, **parts[Response])
    if response.background and not response.streamed:
        response = replace(response, status=ResponseStatus.QUEUED)
    return NewAnswer(
        response=response,
        input=(a_message(f"msg_{name}", text),),
        turn=a_turn(name, messages=(), **turn_fields),
        **parts[NewAnswer],
    )


def a_message(id: str, text: str) -> Item:
    """From the user."""
    content = [{"type": "input_text", "text": text}]
    body = {"type": "message", "role": "user", "content": content}
    return Item(id=ItemId(id), type="message", role="user", body=body, created_ms=1)


async def read_response(watcher: Watcher) -> list[ResponseEvent]:
    """Every event up to the last one."""
    events: list[ResponseEvent] = []
    while more := await watcher.next_events():
        events += more
    return events


def slowly(*, words: int = 12, step_s: float = 0.5) -> ScriptedLauncher:
    """An engine that says `w0 `, `w1 ` and so on, a word a step."""
    return ScriptedLauncher(
        make=lambda: ScriptedLink(
            answer=lambda _: [f"w{number} " for number in range(words)], step_s=step_s
        )
    )


async def some_text(watcher: Watcher) -> list[ResponseEvent]:
    """Its events up to the first text."""
    events: list[ResponseEvent] = []
    while not any(isinstance(event, TextAdded) for event in events):
        events += await watcher.next_events()
    return events


def stored_events(store: TurnStore, id: str) -> list[ResponseEvent]:
    """The log as it is stored: without a gap or an overlap."""
    batches = store.rows[ResponseId(id)].batches
    events: list[ResponseEvent] = []
    for first in sorted(batches):
        assert first == len(events), "a gap or an overlap"
        events += decode_events(batches[first].body)
    return events


def text_of(events: list[ResponseEvent]) -> str:
    return "".join(event.text for event in events if isinstance(event, TextAdded))


def status_of(events: list[ResponseEvent]) -> ResponseStatus | None:
    last = events[-1]
    return last.status if isinstance(last, Ended) else None


@asynccontextmanager
async def running_answers(
    launcher: ScriptedLauncher | None = None,
    *,
    store: TurnStore | None = None,
    recorder: bool = True,
    reaper: bool = False,
    alone: bool = False,
    **rig_options: Any,
) -> AsyncIterator[AnswerRig]:
    """Start everything, and stop it in order afterwards."""
    store = store or TurnStore()
    async with running_rig(launcher, **rig_options) as rig:
        tools = RunTools(
            chat=rig.directory,
            store=store,
            node=NODE,
            now_ms=lambda: round(trio.current_time() * 1000),
            context=lambda: (rig_options.get("settings") or Settings()).context,
        )
        shards = [(f"root/shard-{number}", shard) for number, shard in enumerate(rig.shards)]
        runs = RunDirectory(tools, shards)
        children = []
        if recorder:
            children.append(("recorder", Recorder(runs, tools).run))
        if reaper:
            children.append(("reaper", Reaper(runs, tools, contents=NoContents(), alone=alone).run))
        for id, start in children:
            spec = ChildSpec(id=id, start=start, restart=Restart.TEMPORARY)
            await rig.shards[0].start_child(spec)
        yield AnswerRig(rig=rig, store=store, runs=runs, tools=tools)
