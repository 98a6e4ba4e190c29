"""What the Open Responses specification says of a running server: every body and every event
against its types, and the requests and checks of openresponses.org/compliance. The numbers in
docs/compliance.md are made by it.

    python scripts/open_responses.py [--url URL] [--model NAME] [--runs N]
"""

import argparse
import base64
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import httpx2
import msgspec
import openresponses_types as spec
from pydantic import BaseModel, ValidationError

from antiphon.testing.images import png

Json = dict[str, Any]

_TIMEOUT_S = 300.0
_SHAPES: tuple[Json, ...] = (
    {},
    {"background": True},
    {"store": False},
    {"text": {"format": {"type": "json_object"}}},
    {"include": ["message.output_text.logprobs"]},
    {"input": [{"role": "user", "content": [{"type": "input_text", "text": "Say hello."}]}]},
)
"""Ways to ask, each once whole and once as a stream."""
_WEATHER: Json = {
    "type": "function",
    "name": "get_weather",
    "description": "Get the current weather for a location",
    "parameters": {
        "type": "object",
        "properties": {
            "location": {
                "type": "string",
                "description": "The city and state, e.g. San Francisco, CA",
            }
        },
        "required": ["location"],
    },
}
_CALL_EVENTS = (
    "response.output_item.added",
    "response.function_call_arguments.delta",
    "response.function_call_arguments.done",
    "response.output_item.done",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """One of the compliance page's tests. `calls` says that it wants a call of the function, else a
    whole answer."""

    name: str
    input: list[Json]
    stream: bool = False
    calls: bool = False


def _said(content: Any, role: str = "user") -> Json:
    return {"type": "message", "role": role, "content": content}


def cases() -> tuple[Case, ...]:
    picture = f"data:image/png;base64,{base64.b64encode(png(32, 32)).decode()}"
    weather = [_said("What's the weather like in San Francisco?")]
    return (
        Case(name="basic-response", input=[_said("Say hello in exactly 3 words.")]),
        Case(name="streaming-response", input=[_said("Count from 1 to 5.")], stream=True),
        Case(
            name="system-prompt",
            input=[
                _said("You are a pirate. Always respond in pirate speak.", "system"),
                _said("Say hello."),
            ],
        ),
        Case(name="tool-calling", input=weather, calls=True),
        Case(name="tool-calling-streaming", input=weather, stream=True, calls=True),
        Case(
            name="image-input",
            input=[
                _said(
                    [
                        {
                            "type": "input_text",
                            "text": "What do you see in this image? Answer in one sentence.",
                        },
                        {"type": "input_image", "image_url": picture},
                    ]
                )
            ],
        ),
        Case(
            name="multi-turn",
            input=[
                _said("My name is Alice."),
                _said("Hello Alice! Nice to meet you. How can I help you today?", "assistant"),
                _said("What is my name?"),
            ],
        ),
    )


def event_types() -> dict[str, type[BaseModel]]:
    """The specification's class of each type of event."""
    found = {}
    for name in dir(spec):
        kind = getattr(spec, name)
        if name.endswith("StreamingEvent"):
            values: Any = kind.model_fields["type"].annotation  # an enumeration, mostly of one
            found.update({str(each.value): kind for each in values})
    return found


@dataclass(slots=True)
class Judge:
    """What was checked against a type, and what was wrong with it."""

    events: dict[str, type[BaseModel]] = field(default_factory=event_types)
    checked: int = 0
    problems: list[str] = field(default_factory=list)

    def body(self, body: Json) -> None:
        self._check(spec.ResponseResource, body, "body")

    def event(self, event: Json) -> None:
        kind = self.events.get(event["type"])
        if kind is None:
            self.checked += 1
            self.problems.append(f"the specification has no event {event['type']!r}")
        else:
            self._check(kind, event, event["type"])

    def _check(self, kind: type[BaseModel], value: Json, what: str) -> None:
        self.checked += 1
        try:
            kind.model_validate(value)
        except ValidationError as error:
            first = error.errors()[0]
            place = ".".join(map(str, first["loc"]))
            self.problems.append(f"{what}: {place}: {first['msg']}")


class Server:
    """One that runs."""

    def __init__(self, http: httpx2.Client, model: str, judge: Judge) -> None:
        self._http = http
        self._model = model
        self._judge = judge

    def ask(self, body: Json) -> tuple[Json, list[Json]]:
        """The response and, of a stream, its events. Raises ValueError where it is refused."""
        answer = self._http.post("/v1/responses", json={"model": self._model} | body)
        if answer.status_code != 200:
            raise ValueError(f"HTTP {answer.status_code}: {answer.json()['error']['message']}")
        if not body.get("stream"):
            whole: Json = answer.json()
            self._judge.body(whole)
            return whole, []
        events = list(_events(answer.text))
        for event in events:
            self._judge.event(event)
        last: Json = events[-1]["response"]
        self._judge.body(last)
        return last, events

    def missing(self, case: Case) -> list[str]:
        """Of what the compliance page asks for."""
        tools = [_WEATHER] if case.calls else []
        try:
            response, events = self.ask(
                {"input": case.input, "stream": case.stream, **({"tools": tools} if tools else {})}
            )
        except ValueError as error:
            return [str(error)]
        if not case.calls:
            whole = response["status"] == "completed" and response["output"]
            return [] if whole else [f"status {response['status']}"]
        if case.stream:
            seen = {event["type"] for event in events if _of_call(event)}
            return [f"no {each}" for each in _CALL_EVENTS if each not in seen]
        called = any(item["type"] == "function_call" for item in response["output"])
        return [] if called else ["no function_call"]


def _of_call(event: Json) -> bool:
    return bool(event.get("item", {"type": "function_call"})["type"] == "function_call")


def _events(text: str) -> Iterator[Json]:
    for line in text.splitlines():
        if line.startswith("data: {"):
            yield msgspec.json.decode(line.removeprefix("data: "))


def main(arguments: list[str] | None = None) -> int:
    """Status 1 where a body or an event doesn't fit its type; what a model chose to say is none of
    a server's faults."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n\n")[0])
    parser.add_argument("--url", default="http://127.0.0.1:8000")
    parser.add_argument("--model", help="by default the server's first one")
    parser.add_argument("--runs", type=int, default=1, help="of the compliance page's tests")
    options = parser.parse_args(arguments)
    judge, passed = Judge(), Counter[str]()
    with httpx2.Client(base_url=options.url.removesuffix("/v1"), timeout=_TIMEOUT_S) as http:
        model = options.model or http.get("/v1/models").json()["data"][0]["id"]
        server = Server(http, model, judge)
        for shape in _SHAPES:
            for stream in (False, True):
                server.ask(
                    {"input": "Say hello.", "max_output_tokens": 16, "stream": stream} | shape
                )
        print(f"{judge.checked - len(judge.problems)} of {judge.checked} bodies and events fit")
        for _ in range(options.runs):
            for case in cases():
                missing = server.missing(case)
                passed[case.name] += not missing
                print(f"{'passed' if not missing else 'failed'}  {case.name}  {'; '.join(missing)}")
    for case in cases():
        print(f"{passed[case.name]} of {options.runs}  {case.name}")
    for problem in judge.problems:
        print(problem)
    print(f"{judge.checked - len(judge.problems)} of {judge.checked} bodies and events fit in all")
    return 1 if judge.problems else 0


if __name__ == "__main__":
    sys.exit(main())
