"""A turn as the generations that its pool's scheduler queues: one for each choice. Pure, but for
taking the next numbers."""

import msgspec

from antiphon.actors.context.view import View
from antiphon.actors.scheduling.messages import Generation
from antiphon.actors.scheduling.pool import Pool
from antiphon.actors.sessions.calling import schema_of
from antiphon.actors.sessions.placing import Placement
from antiphon.actors.tools.words import in_words
from antiphon.events import Message, Sampling, Turn

_SEED_BITS = 63


def generations_of(turn: Turn, pool: Pool, view: View) -> tuple[Generation, ...]:
    """The first of each choice."""
    schema = None if turn.tools is None else schema_of(turn.tools)
    return tuple(
        _generation(turn, pool, view, choice, schema, view.max_tokens)
        for choice in range(turn.choices)
    )


def once_more(
    turn: Turn, placed: Placement, *, choice: int, schema: str, max_tokens: int
) -> Generation:
    """A choice that is nothing but a call of that schema."""
    return _generation(turn, placed.pool, placed.view, choice, schema, max_tokens)


def _generation(
    turn: Turn, pool: Pool, view: View, choice: int, calls: str | None, max_tokens: int
) -> Generation:
    sampling = _sampling_of(turn, pool)
    sampling = msgspec.structs.replace(sampling, seed=(sampling.seed + choice) % (1 << _SEED_BITS))
    if calls is not None:
        # What counts for text has no say in a call: cut short, it would be none.
        sampling = msgspec.structs.replace(
            sampling, json_schema=calls, logprobs=False, ignore_eos=False, min_tokens=0
        )
    return Generation(
        request=next(pool.requests),
        prompt=view.prompt,
        max_tokens=max_tokens,
        sampling=sampling,
        stop=turn.stop if calls is None else (),
        salt=turn.salt,
        messages=_messages_for(turn, view) if pool.sends_messages else (),
        affinity=turn.affinity,
    )


def _messages_for(turn: Turn, view: View) -> tuple[Message, ...]:
    """As somebody else's server is sent them: in plain words."""
    return in_words(view.messages, () if turn.tools is None else turn.tools.tools)


def _sampling_of(turn: Turn, pool: Pool) -> Sampling:
    """What the client left open is this model's own default, whichever model was asked for."""
    defaults = {
        name: getattr(pool.sampling_defaults, name)
        for name in turn.silent
        if hasattr(pool.sampling_defaults, name)
    }
    return msgspec.structs.replace(turn.sampling, **defaults) if defaults else turn.sampling
