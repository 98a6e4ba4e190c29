"""The chat page: `/`, and the files it is made of. What is not one of them is not there, so no path
leads anywhere else; and nothing here knows who asks, since the page itself says nothing."""

from dataclasses import dataclass, field

from quart import Quart, request
from quart_trio.wrappers import TrioResponse
from werkzeug.exceptions import NotFound

from antiphon.http.exchange import current_exchange
from antiphon.http.web.assets import Asset, Assets, load_assets
from antiphon.http.web.headers import FOREVER, PAGE_HEADERS, REVALIDATED, SHARED_HEADERS

ENDPOINTS = frozenset({"chat_page", "chat_page_conversation", "chat_page_file"})
"""Of these routes: no operations of the API."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WebRoutes:
    """What the handlers work with."""

    assets: Assets = field(default_factory=load_assets)

    def register(self, app: Quart) -> None:
        app.add_url_rule("/", endpoint="chat_page", view_func=self.page, methods=["GET"])
        app.add_url_rule(
            "/c/<conversation>",
            endpoint="chat_page_conversation",
            view_func=self.conversation,
            methods=["GET"],
        )
        app.add_url_rule(
            "/web/<version>/<path:name>",
            endpoint="chat_page_file",
            view_func=self.file,
            methods=["GET"],
        )

    async def page(self) -> TrioResponse:
        """Asked for anew each time, and hardly ever sent anew."""
        return _answer(self.assets.page, PAGE_HEADERS | REVALIDATED)

    async def conversation(self, conversation: str) -> TrioResponse:
        """The same page: it finds out by itself whether there is one, and whose it is."""
        return await self.page()

    async def file(self, version: str, name: str) -> TrioResponse:
        """Another version's files are gone with it: a page of two halves is none."""
        asset = self.assets.files.get(name)
        if asset is None or version != self.assets.version:
            raise NotFound
        return _answer(asset, SHARED_HEADERS | FOREVER)


def _answer(asset: Asset, headers: dict[str, str]) -> TrioResponse:
    current_exchange().is_quiet = True
    is_packed = asset.packed is not None and request.accept_encodings["gzip"] > 0
    etag = f"{asset.etag}-gzip" if is_packed else asset.etag
    if request.if_none_match.contains_weak(etag):
        response = TrioResponse(b"", status=304, headers=headers)
    else:
        body = asset.packed if is_packed and asset.packed is not None else asset.body
        response = TrioResponse(body, headers=headers, content_type=asset.media_type)
        if is_packed:
            response.headers["content-encoding"] = "gzip"
    response.headers["vary"] = "Accept-Encoding"
    response.set_etag(etag)
    return response
