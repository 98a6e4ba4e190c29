"""A pool as views need it: its vocabulary, its window, what it sees."""

from antiphon.actors.context.seeing import Sight
from antiphon.actors.context.viewing import Means
from antiphon.actors.routing.router import RoutedPool
from antiphon.events import Image
from antiphon.pictures import tokens_of


def means_of(routed: RoutedPool, *, default_max_tokens: int) -> Means:
    """As it is now."""
    pool = routed.pool
    capabilities = pool.status.capabilities
    each = 0 if capabilities is None else capabilities.image_tokens

    def count(image: Image) -> int:
        return each or tokens_of(image.width, image.height)

    return Means(
        tokenizer=pool.tokenizer,
        window=routed.window,
        default_max_tokens=default_max_tokens,
        threads=pool.long_prompts,
        sight=Sight(sees=pool.sees() is True, count=count),
    )
