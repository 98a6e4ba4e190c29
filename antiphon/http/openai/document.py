"""`GET /openapi.json`: what the application serves, described. Public, as documentation is."""

import msgspec
from quart import Quart
from quart_trio.wrappers import TrioResponse

import antiphon
from antiphon.http.openai.openapi import Operation, make_document, mount, mounted
from antiphon.records import JsonObject


class DocumentRoutes:
    """To be registered when every other route is mounted."""

    def __init__(self) -> None:
        self._encoded = b""

    def register(self, app: Quart) -> None:
        operation = Operation(
            method="GET",
            rule="/openapi.json",
            name="openapi",
            handler=self.get,
            summary="This document",
            answer=JsonObject,
        )
        mount(app, (operation,))
        document = make_document(mounted(app), version=antiphon.__version__)
        self._encoded = msgspec.json.encode(document)

    async def get(self) -> TrioResponse:
        return TrioResponse(self._encoded, content_type="application/json")
