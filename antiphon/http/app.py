"""The API's application: the OpenAI routes inside the error boundary."""

from quart_trio import QuartTrio

from antiphon.http.boundary import BoundedApp
from antiphon.http.openai.chat import ChatRoutes
from antiphon.http.openai.models import ModelRoutes
from antiphon.ports import Chat, Telemetry
from antiphon.settings import GenerationSettings, HttpSettings


def make_api_app(
    chat: Chat,
    settings: HttpSettings,
    generation: GenerationSettings,
    telemetry: Telemetry,
) -> QuartTrio:
    """The application behind the API listener."""
    app = BoundedApp(__name__, settings, telemetry, is_openai=True)
    ChatRoutes(chat=chat, http=settings, generation=generation, telemetry=telemetry).register(app)
    ModelRoutes(chat=chat).register(app)
    return app
