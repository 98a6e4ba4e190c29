"""How a replica is: asked again and again, and at once when an attempt there was lost.

What a probe reads must not cost the replica anything: `/health`, or its list of models, never a
token, since those come late exactly when there is much to do.
"""

import json
from collections.abc import Mapping
from typing import Any

import trio

from antiphon.engine.upstream.dialect import Flavour
from antiphon.engine.upstream.exchange import Connect, Exchange
from antiphon.engine.upstream.fleet import Facts, Fleet, Replica
from antiphon.engine.upstream.trouble import Kind, Trouble
from antiphon.engine.upstream.urls import root_of
from antiphon.upstream_settings import UpstreamSettings

_PATIENCE_S = 5.0
_MISSES = 2
"""In a row: a replica that is busy may be late once."""
_LONGEST_PAGE = 1024 * 1024
_AT_LEAST_S = 0.1
"""Between two looks, however many attempts are lost at once."""


class Probe:
    """The look-out for one replica."""

    def __init__(
        self,
        replica: Replica,
        fleet: Fleet,
        settings: UpstreamSettings,
        connect: Connect,
        headers: Mapping[str, str],
    ) -> None:
        self._replica = replica
        self._fleet = fleet
        self._settings = settings
        self._connect = connect
        self._headers = headers
        self._misses = 0

    async def run(self) -> None:
        """For ever."""
        replica = self._replica
        while True:
            replica.look_now = trio.Event()
            await self.look()
            await trio.sleep(min(_AT_LEAST_S, self._settings.probe_s))
            with trio.move_on_after(self._settings.probe_s):
                await replica.look_now.wait()

    async def look(self) -> None:
        """Once."""
        replica = self._replica
        try:
            if replica.is_up and replica.facts is not None:
                await self._get(replica.facts.health)
                facts = replica.facts
            else:
                facts = await self._ask_all()
        except Trouble as trouble:
            self._misses += 1
            if trouble.kind is not Kind.SILENT or self._misses >= _MISSES or not replica.is_up:
                self._fleet.went_down(replica, trouble.fact)
        else:
            self._misses = 0
            self._fleet.came_up(replica, facts)

    async def _ask_all(self) -> Facts:
        """What a replica that comes, or comes back, is: it may be another one by now."""
        base = self._replica.url
        card = self._card(await self._get(f"{base}/models"))
        owner = card.get("owned_by")
        engine = owner if isinstance(owner, str) else None
        flavour = Flavour.of(engine or "")
        health = f"{root_of(base)}/health"
        try:
            await self._get(health)
        except Trouble as trouble:
            if trouble.kind is not Kind.UNUSABLE:
                raise
            health = f"{base}/models"  # it has no such page
        window, vision = _window(card), _flag(card.get("vision"))
        if flavour is Flavour.LLAMA_CPP:
            # It divides its context among its slots, and its list of models says neither.
            page = await self._page("/props")
            window = _window_of_a_slot(page) or window
            vision = _sees(page)
        elif flavour is Flavour.SGLANG:
            vision = _flag((await self._page("/get_model_info")).get("has_image_understanding"))
        return Facts(flavour=flavour, engine=engine, window=window, health=health, vision=vision)

    def _card(self, page: Any) -> dict[str, Any]:
        """The entry of our model. Raises Trouble."""
        data = page.get("data") if isinstance(page, dict) else None
        cards = [card for card in data if isinstance(card, dict)] if isinstance(data, list) else []
        for card in cards:
            if card.get("id") == self._settings.model:
                return card
        names = ", ".join(str(card.get("id"))[:80] for card in cards[:3])
        raise Trouble(Kind.UNUSABLE, f"it doesn't list the model; it lists: {names or 'none'}")

    async def _page(self, path: str) -> dict[str, Any]:
        """What only some servers have; empty where this one hasn't."""
        try:
            page = await self._get(f"{root_of(self._replica.url)}{path}")
        except Trouble:
            return {}
        return page if isinstance(page, dict) else {}

    async def _get(self, url: str) -> Any:
        """A page as JSON, None where it is none. Raises Trouble."""
        async with Exchange(
            self._connect, url, self._headers, connect_s=self._settings.connect_s
        ) as exchange:
            await exchange.open(_PATIENCE_S)
            body = await exchange.read(_LONGEST_PAGE, _PATIENCE_S)
        try:
            return json.loads(body)
        except (ValueError, RecursionError):
            return None


def _window_of_a_slot(page: Mapping[str, Any]) -> int | None:
    match page:
        case {"default_generation_settings": {"n_ctx": int(window)}} if window > 0:
            return window
        case _:
            return None


def _sees(page: Mapping[str, Any]) -> bool | None:
    match page:
        case {"modalities": {"vision": bool(vision)}}:
            return vision
        case _:
            return None


def _flag(value: object) -> bool | None:
    return value if isinstance(value, bool) else None


def _window(card: Mapping[str, Any]) -> int | None:
    meta = card.get("meta")
    for window in (
        card.get("max_model_len"),
        meta.get("n_ctx") if isinstance(meta, dict) else None,
    ):
        if isinstance(window, int) and window > 0:
            return window
    return None
