"""The API's application: the OpenAI routes inside the error boundary."""

from collections.abc import Callable

from quart_trio import QuartTrio

from antiphon.context_settings import ContextSettings
from antiphon.files_settings import FilesSettings
from antiphon.http.auth import require_key
from antiphon.http.boundary import BoundedApp
from antiphon.http.brakes import Brakes
from antiphon.http.openai.chat import ChatRoutes
from antiphon.http.openai.conversations.export import ExportRoutes
from antiphon.http.openai.conversations.item_routes import ItemRoutes
from antiphon.http.openai.conversations.routes import ConversationRoutes
from antiphon.http.openai.conversations.search import SearchRoutes
from antiphon.http.openai.document import DocumentRoutes
from antiphon.http.openai.files.inline import MessageFiles
from antiphon.http.openai.files.routes import FileRoutes
from antiphon.http.openai.memory.routes import MemoryRoutes
from antiphon.http.openai.models import ModelRoutes
from antiphon.http.openai.moderations.routes import ModerationRoutes
from antiphon.http.openai.prompting import Prompting
from antiphon.http.openai.responses.routes import ResponseRoutes
from antiphon.http.openai.stored_chat.routes import StoredChatRoutes
from antiphon.http.openai.users.routes import UserRoutes
from antiphon.http.openai.vector_stores.file_routes import StoreFileRoutes
from antiphon.http.openai.vector_stores.routes import VectorStoreRoutes
from antiphon.http.web.routes import WebRoutes
from antiphon.moderating import Moderation
from antiphon.ports import Accounts, Chat, Contents, Responses
from antiphon.retrieval import FileSearching
from antiphon.settings import GenerationSettings, HttpSettings
from antiphon.storage import StoreAccess
from antiphon.telemetry import Telemetry


def make_api_app(
    chat: Chat,
    settings: Callable[[], HttpSettings],
    generation: Callable[[], GenerationSettings],
    telemetry: Telemetry,
    *,
    accounts: Accounts,
    responses: Responses | None = None,
    store: StoreAccess | None = None,
    contents: Contents | None = None,
    brakes: Brakes | None = None,
    moderation: Moderation | None = None,
    prompting: Prompting | None = None,
    context: Callable[[], ContextSettings] = ContextSettings,
    searching: FileSearching | None = None,
    file_settings: Callable[[], FilesSettings] = FilesSettings,
) -> QuartTrio:
    """The application behind the API listener. Settings are asked for at each use. Without a store
    there is nothing that keeps state, without `searching` no file is ever read."""
    app = BoundedApp(__name__, settings, telemetry, is_openai=True)
    app.brakes = brakes
    require_key(app, accounts, brakes)
    files = None
    if searching is not None and store is not None and contents is not None:
        files = MessageFiles(store=store, contents=contents, http=settings, settings=file_settings)
    ChatRoutes(
        chat=chat,
        http=settings,
        generation=generation,
        telemetry=telemetry,
        responses=responses,
        moderation=moderation,
        prompting=prompting,
        files=files,
        searching=searching,
    ).register(app)
    ModelRoutes(chat=chat).register(app)
    if responses is not None and store is not None:
        ResponseRoutes(
            responses=responses,
            store=store,
            chat=chat,
            http=settings,
            telemetry=telemetry,
            moderation=moderation,
            prompting=prompting,
            context=context,
            files=files,
            searching=searching,
        ).register(app)
        StoredChatRoutes(store=store, http=settings).register(app)
    if store is not None and contents is not None:
        ConversationRoutes(store=store, contents=contents, http=settings, files=files).register(app)
        SearchRoutes(store=store).register(app)
        ItemRoutes(store=store, contents=contents, http=settings, files=files).register(app)
        ExportRoutes(store=store).register(app)
        FileRoutes(
            store=store,
            contents=contents,
            http=settings,
            files=file_settings,
            searching=searching,
        ).register(app)
        MemoryRoutes(store=store, http=settings, context=context).register(app)
        UserRoutes(store=store, contents=contents, http=settings).register(app)
    if store is not None and searching is not None:
        for routes in (VectorStoreRoutes, StoreFileRoutes):
            routes(store=store, searching=searching, http=settings, files=file_settings).register(
                app
            )
    if moderation is not None:
        ModerationRoutes(moderation=moderation, http=settings).register(app)
    DocumentRoutes().register(app)
    WebRoutes().register(app)
    return app
