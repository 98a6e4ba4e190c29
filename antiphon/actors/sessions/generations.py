"""A turn as the generations that its pool's scheduler queues: one for each choice. Pure, but for
taking the next numbers."""

import msgspec

from antiphon.actors.context.view import View
from antiphon.actors.scheduling.messages import Generation
from antiphon.actors.scheduling.pool import Pool
from antiphon.events import Sampling, Turn

_SEED_BITS = 63


def generations_of(turn: Turn, pool: Pool, view: View) -> tuple[Generation, ...]:
    sampling = _sampling_of(turn, pool)
    return tuple(
        Generation(
            request=next(pool.requests),
            prompt=view.prompt,
            max_tokens=view.max_tokens,
            sampling=msgspec.structs.replace(
                sampling, seed=(sampling.seed + choice) % (1 << _SEED_BITS)
            ),
            stop=turn.stop,
            salt=turn.salt,
            messages=turn.messages if pool.sends_messages else (),
            affinity=turn.affinity,
        )
        for choice in range(turn.choices)
    )


def _sampling_of(turn: Turn, pool: Pool) -> Sampling:
    """What the client left open is this model's own default, whichever model was asked for."""
    defaults = {
        name: getattr(pool.sampling_defaults, name)
        for name in turn.silent
        if hasattr(pool.sampling_defaults, name)
    }
    return msgspec.structs.replace(turn.sampling, **defaults) if defaults else turn.sampling
