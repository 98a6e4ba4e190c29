"""What `generate_async` returns: it yields itself, mutated, once for each response, with no bound
on any wait; an error leaves it unfinished."""

import asyncio
from collections import deque
from dataclasses import dataclass, field
from typing import Any, Protocol


class RequestError(RuntimeError):
    """Concerns one request."""


class CppExecutorError(RuntimeError):
    """Concerns the engine."""


@dataclass(frozen=True, slots=True)
class Logprob:
    logprob: float
    rank: int | None = None


@dataclass(slots=True)
class CompletionOutput:
    index: int
    text: str = ""
    token_ids: list[int] = field(default_factory=list)
    cumulative_logprob: float | None = None
    logprobs: list[dict[int, Logprob]] = field(default_factory=list)
    finish_reason: str | None = None
    stop_reason: int | str | None = None


@dataclass(frozen=True, slots=True)
class Response:
    """One step's news of a request, as it comes out of the executor."""

    request_id: int
    tokens: tuple[int, ...] = ()
    finish_reason: str | None = None
    is_final: bool = False
    cut: int = 0
    error: str | None = None


class Executor(Protocol):
    """The part of it that a result calls back."""

    def abort_request(self, client_id: int) -> None: ...

    def handle_background_error(self) -> None: ...


class RequestOutput:
    def __init__(self, request_id: int, prompt_token_ids: list[int], executor: Executor) -> None:
        self.request_id = request_id
        self.prompt: str | None = None
        self.prompt_token_ids = prompt_token_ids
        self.outputs = [CompletionOutput(0)]
        self.cached_tokens = 0
        self._executor = executor
        self._responses: deque[Response] = deque()
        self._arrived = asyncio.Event()
        self._done = False
        self._aborted = False
        self._want_logprobs = False

    @property
    def finished(self) -> bool:
        return self._done

    def abort(self) -> None:
        self._executor.abort_request(self.request_id)
        self._aborted = True

    def aborted(self) -> bool:
        return self._aborted

    def result(self, timeout: float | None = None) -> "RequestOutput":
        raise RuntimeError("a synchronous wait on the event loop: MixedSyncAsyncAPIError follows")

    async def aresult(self) -> "RequestOutput":
        while not self._done:
            await self._next()
        return self

    def __aiter__(self) -> "RequestOutput":
        return self

    async def __anext__(self) -> "RequestOutput":
        if self._done:
            raise StopAsyncIteration
        await self._next()
        return self

    def put(self, response: Response) -> None:
        self._responses.append(response)
        self._arrived.set()

    async def _next(self) -> None:
        while not self._responses:
            self._arrived.clear()
            await self._arrived.wait()
        self._handle(self._responses.popleft())
        self._executor.handle_background_error()

    def _handle(self, response: Response) -> None:
        if response.error is not None:
            raise RequestError(response.error)  # and `_done` stays as it is
        output = self.outputs[0]
        output.token_ids = [*output.token_ids, *response.tokens]
        if self._want_logprobs:
            output.logprobs += [{token: Logprob(-0.25, 1)} for token in response.tokens]
        if response.cut:
            output.token_ids = output.token_ids[: -response.cut]
        if response.finish_reason is not None:
            output.finish_reason = response.finish_reason
        self._done = response.is_final

    def expect_logprobs(self, wanted: Any) -> None:
        self._want_logprobs = bool(wanted)
