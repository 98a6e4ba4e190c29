"""The pages for people on the operations listener."""

import re
from html.parser import HTMLParser

import httpx2
import pytest
from prometheus_client import CollectorRegistry

from antiphon.actors.moderation.status import JudgeView, PolicyView
from antiphon.context_records import PromptActivation
from antiphon.events import EndReason
from antiphon.http.ops.app import make_ops_app
from antiphon.http.ops.metrics import PrometheusTelemetry
from antiphon.http.ops.policy import PolicySource
from antiphon.ids import EngineRequest, ModelName, RequestId, SlotIndex
from antiphon.moments import Arrived, Ended, FirstToken, Freed, Granted, Placed, Queued
from antiphon.settings import HttpSettings
from antiphon.testing.http import serving
from antiphon.testing.ops import ScriptedSources, no_commands
from antiphon.views import Fate, Manifest, ManifestRun, PieceKind
from antiphon.workload import WorkloadClass

MODEL = ModelName("m")
ONE = EngineRequest(1)
SINCE_MS = 1_700_000_000_000
HTML = {"accept": "text/html,application/xhtml+xml,*/*;q=0.8"}
POLICY = PolicyView(
    version="7",
    source="rules<.toml",
    rules=3,
    shadows=1,
    model="words",
    problem=None,
    refused="rules.toml:4: <unknown key>",
    versions_in_use=("7",),
    waiting=2,
    remembered=5,
    events_waiting=0,
    events_dropped=0,
    judges=(
        JudgeView(
            name="judge-1", state="idle", pid=42, starts=1, batches=3, texts=4, last_exit=None
        ),
    ),
)
MANIFEST = Manifest(
    window=2048,
    reserved_for_answer=512,
    prompt_tokens=40,
    template_tokens=4,
    truncation="auto",
    runs=(
        ManifestRun(kind=PieceKind.HISTORY, fate=Fate.DROPPED, items=3, tokens=90, shown_tokens=0),
    ),
)


class Clock:
    now = 100.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def registry():
    return CollectorRegistry()


@pytest.fixture
def telemetry(registry, clock):
    return PrometheusTelemetry(registry, clock)


@pytest.fixture
def sources():
    return ScriptedSources()


@pytest.fixture
async def get(sources, registry, telemetry):
    app = make_ops_app(
        sources,
        HttpSettings,
        registry,
        telemetry,
        no_commands(),
        policy=PolicySource(view=lambda: POLICY, reload=None, store=None),
        recent=telemetry.recent,
    )
    async with (
        serving(app, HttpSettings()) as server,
        httpx2.AsyncClient(base_url=server.url) as client,
    ):
        yield client.get


@pytest.fixture
def note(telemetry, clock):
    """One moment of a turn, so many seconds after the last one."""

    def note(request: str, moment, after_s: float = 0.0) -> None:
        clock.now += after_s
        telemetry.turn_noted(RequestId(request), moment)

    return note


def a_turn(note, request: str, *, ends: bool = True) -> None:
    arrived = Arrived(asked=MODEL, response=f"resp_{request}", user="u", messages=2, choices=1)
    note(request, arrived)
    placed = Placed(
        model=MODEL,
        moved=None,
        reasons=("only_one",),
        passed=(),
        predicted_s=None,
        prompt_tokens=40,
        max_tokens=512,
        manifest=MANIFEST,
    )
    note(request, placed, 0.1)
    note(
        request,
        Queued(lane=WorkloadClass.INTERACTIVE, generations=1, slots=1, running=0, waiting=0),
    )
    note(request, Granted(generation=ONE, slot=SlotIndex(0), waited_s=0.2), 0.1)
    note(request, FirstToken(generation=ONE), 0.3)
    if ends:
        note(request, Ended(reason="stop", prompt_tokens=40, completion_tokens=9), 1.0)
        freed = Freed(generation=ONE, slot=SlotIndex(0), reason=EndReason.STOP, tokens=9)
        note(request, freed)


class Outline(HTMLParser):
    """What a page is made of: elements with their attributes."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None]]] = []
        self.feed(html)

    def handle_starttag(self, tag, attrs):
        self.found.append((tag, dict(attrs)))

    def named(self, tag: str) -> list[dict[str, str | None]]:
        return [attributes for name, attributes in self.found if name == tag]


async def test_recent_requests_are_listed_with_where_their_time_went(get, note):
    a_turn(note, "req_a")
    a_turn(note, "req_b", ends=False)

    data = (await get("/ops/requests")).json()["data"]
    page = (await get("/ops")).text

    assert [(each["request_id"], each["state"]) for each in data] == [
        ("req_b", "writing"),
        ("req_a", "stop"),
    ]
    assert data[1]["queued_s"] == 0.2
    assert data[1]["first_token_s"] == 0.5
    assert '<a href="/ops/requests/req_a">' in page
    assert "interactive" in page


@pytest.mark.parametrize("limit", ["0", "-1", "1001"])
async def test_as_many_requests_as_asked_for_within_reason(get, note, limit):
    for number in range(5):
        a_turn(note, f"req_{number}")

    assert len((await get("/ops/requests", params={"limit": "2"})).json()["data"]) == 2
    assert (await get("/ops/requests", params={"limit": limit})).status_code == 400


async def test_one_request_is_json_for_programs_and_a_page_for_browsers(get, note):
    a_turn(note, "req_a")

    story = await get("/ops/requests/req_a")
    page = await get("/ops/requests/req_a", headers=HTML)

    assert [moment["moment"]["type"] for moment in story.json()["moments"]] == [
        *("arrived", "placed", "queued", "granted", "first_token", "ended", "freed")
    ]
    assert story.json()["manifest"]["runs"][0]["fate"] == "dropped"
    assert page.headers["content-type"] == "text/html; charset=utf-8"
    assert "first token" in page.text
    assert "dropped" in page.text
    assert story.headers["vary"] == page.headers["vary"] == "accept"
    assert (await get("/ops/requests/req_a?format=json", headers=HTML)).json() == story.json()
    assert (await get("/ops/requests/resp_req_a")).json() == story.json()


async def test_a_request_that_nobody_remembers_is_404(get):
    answer = await get("/ops/requests/req_x")

    assert answer.status_code == 404
    assert answer.json()["error"]["code"] == "no_such_request"


async def test_only_a_request_that_runs_is_looked_at_again(get, note):
    a_turn(note, "req_a")
    a_turn(note, "req_b", ends=False)

    ended = (await get("/ops/requests/req_a", headers=HTML)).text
    running = (await get("/ops/requests/req_b", headers=HTML)).text

    assert 'data-live="false"' in ended
    assert "http-equiv" not in ended
    assert 'data-live="true"' in running
    assert 'http-equiv="refresh"' in running


@pytest.mark.parametrize("path", ["/ops", "/ops/requests/req_a", "/ops/prompts"])
async def test_nothing_but_the_servers_own_files_may_run_or_be_loaded(get, note, path):
    a_turn(note, "req_a")

    answer = await get(path, headers=HTML)
    outline = Outline(answer.text)

    policy = answer.headers["content-security-policy"]
    assert policy.startswith("default-src 'none'; script-src 'self'; style-src 'self';")
    assert "unsafe" not in policy
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert answer.headers["cache-control"] == "no-store"
    assert [script["src"] for script in outline.named("script")] == ["/ops/static/ops.mjs"]
    assert [link["href"] for link in outline.named("link")] == ["data:,", "/ops/static/ops.css"]
    assert not outline.named("style")
    for _, attributes in outline.found:
        assert not [name for name in attributes if name == "style" or name.startswith("on")]
    assert not re.findall(r'(?:src|href)="(?:https?:)?//', answer.text)


@pytest.mark.parametrize(
    ("name", "kind"), [("ops.css", "text/css"), ("ops.mjs", "text/javascript")]
)
async def test_what_pages_load_is_there_and_is_asked_for_again_only_if_changed(get, name, kind):
    first = await get(f"/ops/static/{name}")
    again = await get(f"/ops/static/{name}", headers={"if-none-match": first.headers["etag"]})

    assert first.headers["content-type"].startswith(kind)
    assert first.headers["x-content-type-options"] == "nosniff"
    assert first.content
    assert (again.status_code, again.content) == (304, b"")


@pytest.mark.parametrize("name", ["page.py", "..%2fpage.py", "ops.css%00", "x"])
async def test_nothing_else_of_the_package_is_served(get, name):
    assert (await get(f"/ops/static/{name}")).status_code == 404


@pytest.mark.parametrize("path", ["/ops", "/ops/requests/req_a", "/ops/prompts"])
async def test_pages_can_be_found_ones_way_in_by_ear(get, note, path):
    a_turn(note, "req_a")

    outline = Outline((await get(path, headers=HTML)).text)

    assert outline.named("html") == [{"lang": "en"}]
    assert len(outline.named("main")) == len(outline.named("h1")) == 1
    headings = {heading["id"] for heading in outline.named("h2")}
    assert [section["aria-labelledby"] for section in outline.named("section")] == [
        heading["id"] for heading in outline.named("h2")
    ]
    assert len(headings) == len(outline.named("h2"))
    assert all(head["scope"] in {"col", "row"} for head in outline.named("th"))
    assert len(outline.named("table")) == len(
        [each for each in outline.named("div") if each.get("role") == "group"]
    )
    for image in (*outline.named("svg"), *outline.named("meter")):
        assert image["aria-label"]


async def test_figures_are_what_was_counted(get, note, telemetry, clock):
    a_turn(note, "req_a")
    telemetry.tokens_generated(MODEL, 30, 0.0)
    telemetry.http_request_finished("/v1/x", "GET", 200, 0.1)
    telemetry.admission_rejected("queue_full")
    telemetry.texts_judged("input", "blocked")
    telemetry.rule_matched("secrets", "block", shadow=False)
    telemetry.rule_matched("secrets", "block", shadow=True)
    telemetry.work_finished("title", "model")
    clock.now += 1.0

    figures = (await get("/ops/figures")).json()

    assert figures["ends"] == {"stop": 1}
    assert figures["first_tokens"]["turns"] == 1
    assert figures["first_tokens"]["median_s"] == 0.5
    assert figures["rates"][0]["tokens_per_second"] == 3.0
    assert figures["rates"][0]["last_minute"][-1] == 30
    assert figures["statuses"]["200"] == 1
    assert figures["refused"] == {"queue_full": 1}
    assert figures["verdicts"] == {"input": {"blocked": 1}}
    assert figures["findings"] == {"secrets": {"block": 1, "shadow": 1}}
    assert figures["work"] == {"title": {"model": 1}}


async def test_the_page_shows_policy_store_and_work_and_escapes_what_it_shows(get, sources):
    sources.age_s = 75.0
    sources.worries = ["store: <no space>"]

    text = " ".join((await get("/ops")).text.split())

    assert "3 rules of version" in text
    assert "rules&lt;.toml" in text
    assert "&lt;unknown key&gt;" in text
    assert "judge-1" in text
    assert "7 done" in text
    assert "ended a turn 75 s ago" in text
    assert "ready, but store: &lt;no space&gt;" in text


async def test_prompts_are_shown_by_version_with_their_shares_errors_and_blocks(
    get, sources, telemetry
):
    sources.activations = [
        PromptActivation(
            name="house", number=4, arms={2: 0.9, 3: 0.1}, created_ms=1_700_000_000_000
        )
    ]
    for prompt, end, times in (
        ("house@1", "stop", 1),
        ("house@2", "stop", 5),
        ("house@2", "error", 2),
        ("house@2", "content_filter", 1),
        ("guide@1", "length", 2),
    ):
        for _ in range(times):
            telemetry.prompt_used(prompt, end)

    guide, house = (await get("/ops/prompts")).json()["data"]
    page = " ".join((await get("/ops/prompts", headers=HTML)).text.split())
    overview = " ".join((await get("/ops")).text.split())

    assert (house["name"], house["activation"], house["since_ms"]) == (
        "house",
        4,
        1_700_000_000_000,
    )
    assert [(each["version"], each["share"], each["turns"]) for each in house["versions"]] == [
        *((1, 0.0, 1), (2, 0.9, 8), (3, 0.1, 0)),
    ]
    one, two, three = house["versions"]
    assert (two["failed"], two["error_rate"]) == (2, 0.25)
    assert (two["blocked"], two["block_rate"]) == (1, 0.125)
    assert two["ends"] == {"content_filter": 1, "error": 2, "stop": 5}
    assert (one["error_rate"], three["error_rate"], three["block_rate"]) == (0.0, None, None)
    assert (guide["activation"], guide["versions"][0]["turns"]) == (None, 2)
    for shown in (page, overview):
        assert 'data-key="house@2"' in shown
        assert '<td class="number bad">25.0 %</td>' in shown
        assert '<td class="number warn">12.5 %</td>' in shown
        assert "content filter 1, error 2, stop 5" in shown
        assert "by request" in shown
    assert "activation 4, since 2023-11-14 22:13:20 UTC" in page
    assert '<a href="/ops/prompts">' in overview
    assert (await get("/ops/prompts?format=json", headers=HTML)).json()["data"] == [guide, house]


async def test_where_there_are_no_prompts_the_pages_say_so(get):
    assert (await get("/ops/prompts")).json() == {"data": []}
    assert "no request has named one" in (await get("/ops/prompts", headers=HTML)).text
    assert "None in force" in (await get("/ops")).text


async def test_the_database_is_shown_by_itself(get):
    store = (await get("/ops/store")).json()

    assert (store["ready"], store["done"]) == (True, 7)


async def test_a_failure_is_counted_as_one_and_a_client_that_leaves_is_not(get, note):
    for request, ended in (
        ("req_a", Ended(reason="error", error="HostLost")),
        ("req_b", Ended(reason="stop")),
        ("req_c", Ended(reason="abort", error=None)),
    ):
        note(request, Arrived(asked=MODEL, response=None, user=None, messages=1, choices=1))
        note(request, ended)

    text = " ".join((await get("/ops")).text.split())

    assert 'turns that failed</dt><dd class="bad">1</dd>' in text
    assert "of 3 since the start" in text
