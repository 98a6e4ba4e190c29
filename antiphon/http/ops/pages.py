"""The routes of the pages for people, of what they load, and of recent requests.

Nothing but this server's own files may run or be loaded in them, whatever a name from a client
says: the policy in their headers allows no inline script, no style, no frame and no other host.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from importlib import resources
from itertools import islice

import msgspec
from prometheus_client import CollectorRegistry
from quart import request
from quart_trio import QuartTrio
from quart_trio.wrappers import TrioResponse

from antiphon import __version__
from antiphon.actors.abuse.abuse import Abuse
from antiphon.actors.abuse.showing import Overview, overview
from antiphon.actors.moderation.status import PolicyView
from antiphon.http.ops.answers import ops_error, ops_json, ops_reply
from antiphon.http.ops.figures import Figures, figures
from antiphon.http.ops.page import Shown, render_page, render_prompts, render_request
from antiphon.http.ops.prompts import PromptView, prompt_views
from antiphon.http.ops.recent import Recent
from antiphon.http.ops.sources import OpsSources
from antiphon.http.ops.summary import Summary, summarised, told

_SHOWN = 40
_USUAL_REQUESTS, _MOST_REQUESTS = 100, 1000
_LONGEST_ID = 128
_MOST_SUSPECTS = 2000
_HEADERS = {
    "cache-control": "no-store",
    "content-security-policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
        "img-src 'self' data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    ),
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "referrer-policy": "no-referrer",
    "x-content-type-options": "nosniff",
}
_KINDS = {"ops.css": "text/css; charset=utf-8", "ops.mjs": "text/javascript; charset=utf-8"}


@dataclass(frozen=True, slots=True, kw_only=True)
class PageRoutes:
    sources: OpsSources
    recent: Recent
    registry: CollectorRegistry
    policy: Callable[[], PolicyView] | None = None
    abuse: Abuse | None = None

    def register(self, app: QuartTrio) -> None:
        pages = {
            "/ops": self.page,
            "/ops/figures": self.figures,
            "/ops/requests": self.requests,
            "/ops/prompts": self.prompts,
        }
        for path, page in pages.items():
            app.add_url_rule(path, view_func=page, endpoint=path)
        app.add_url_rule("/ops/requests/<id>", view_func=self.request, endpoint="request")
        app.add_url_rule("/ops/static/<name>", view_func=self.static, endpoint="static")

    async def page(self) -> TrioResponse:
        """How everything stands, for people."""
        sources = self.sources
        shown = Shown(
            version=__version__,
            not_ready=sources.not_ready(),
            concerns=sources.concerns(),
            tree=sources.tree(),
            slots=sources.slots(),
            runtime=sources.runtime(),
            breakers=sources.breakers(),
            replicas=sources.replicas(),
            pools=sources.pools(),
            figures=self._figures(),
            requests=self._requests(_SHOWN),
            prompts=self._prompts(),
            store=sources.store_statistics(),
            work_age_s=sources.work_age_s(),
            policy=None if self.policy is None else self.policy(),
            abuse=self._abuse(),
            has_abuse=self.abuse is not None,
        )
        return _html(render_page(shown))

    async def figures(self) -> TrioResponse:
        """What the page shows of rates, times and counts."""
        return ops_json(msgspec.json.encode(self._figures()), status=200)

    async def requests(self) -> TrioResponse:
        """The latest turns, those that run first."""
        limit = request.args.get("limit", default=_USUAL_REQUESTS, type=int)
        if not 1 <= limit <= _MOST_REQUESTS:
            message = f"limit must be from 1 to {_MOST_REQUESTS}."
            return ops_error(ops_reply(400, message, "invalid_limit"))
        return ops_json(msgspec.json.encode({"data": self._requests(limit)}), status=200)

    async def request(self, id: str) -> TrioResponse:
        """One turn, by its request's id or its response's: a page for browsers, else JSON."""
        line = self.recent.timelines.find(id)
        if line is None:
            message = f"No turn of request or response {id[:_LONGEST_ID]!r} is remembered."
            return ops_error(ops_reply(404, message, "no_such_request"))
        story = told(line, self.recent.clock())
        return _negotiated(story, lambda: render_request(story, version=__version__))

    async def prompts(self) -> TrioResponse:
        """System prompts by version, how turns have ended that began with them: a page for
        browsers, else JSON."""
        views = self._prompts()
        return _negotiated({"data": views}, lambda: render_prompts(views, version=__version__))

    async def static(self, name: str) -> TrioResponse:
        """What the pages load."""
        kind = _KINDS.get(name)
        if kind is None:
            return ops_error(ops_reply(404, f"There is no file {name[:_LONGEST_ID]!r}.", "no_file"))
        headers = _HEADERS | {"cache-control": "no-cache"}
        response = TrioResponse(_read(name), content_type=kind, headers=headers)
        await response.add_etag()
        await response.make_conditional(request)
        return response

    def _abuse(self) -> Overview | None:
        """Not when there are so many that looking through them, again and again, is work."""
        if self.abuse is None or len(self.abuse.detection) > _MOST_SUSPECTS:
            return None
        return overview(self.abuse, _now_ms())

    def _figures(self) -> Figures:
        models = [pool.model for pool in self.sources.pools()]
        return figures(self.registry, self.recent, models)

    def _prompts(self) -> tuple[PromptView, ...]:
        return prompt_views(self.registry, self.sources.prompts_in_force())

    def _requests(self, limit: int) -> list[Summary]:
        now = self.recent.clock()
        return [summarised(line, now) for line in islice(self.recent.timelines, limit)]


def _negotiated(value: object, page: Callable[[], str]) -> TrioResponse:
    """The page for who would rather have one, else the value as JSON."""
    accepted = request.accept_mimetypes.best_match(["application/json", "text/html"])
    if accepted == "text/html" and request.args.get("format") != "json":
        return _html(page())
    response = ops_json(msgspec.json.encode(value), status=200)
    response.headers["vary"] = "accept"
    return response


def _html(page: str) -> TrioResponse:
    headers = _HEADERS | {"vary": "accept"}
    return TrioResponse(page, content_type="text/html; charset=utf-8", headers=headers)


@cache
def _read(name: str) -> bytes:
    return resources.files("antiphon.http.ops").joinpath("static", name).read_bytes()


def _now_ms() -> int:
    return time.time_ns() // 1_000_000
