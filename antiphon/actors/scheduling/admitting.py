"""A generation whose ticket has a slot as the command that its engine is given. Pure."""

from antiphon.actors.scheduling.messages import Generation
from antiphon.actors.scheduling.tickets import Capacity, Lease
from antiphon.events import Admit, Capabilities, Sampling
from antiphon.workload import WorkloadClass

_PATIENT = frozenset({WorkloadClass.LONG, WorkloadClass.BACKGROUND})
"""Lanes whose prompts let others' pass them."""


def is_patient(lease: Lease, *, crowds: bool) -> bool:
    """Whether its prompt lets others' pass, as those of a tenant do that `crowds` others."""
    return crowds or lease.ticket.workload.lane in _PATIENT


def admit_of(generation: Generation, lease: Lease, *, patient: bool) -> Admit:
    return Admit(
        request=generation.request,
        slot=lease.slot,
        prompt=generation.prompt,
        max_tokens=generation.max_tokens,
        sampling=generation.sampling,
        stop=list(generation.stop),
        salt=generation.salt,
        messages=generation.messages,
        affinity=generation.affinity,
        patient=patient,
    )


def capacity_of(capabilities: Capabilities) -> Capacity:
    return Capacity(
        slots=capabilities.slots,
        kv_blocks=capabilities.kv_blocks,
        block_size=capabilities.block_size,
        lets_pass=capabilities.lets_pass,
    )


def is_resumable(sampling: Sampling) -> bool:
    """Not what an engine counts over the tokens of one run: the next would begin anew."""
    return sampling.json_schema is None and not (
        sampling.presence_penalty or sampling.frequency_penalty
    )
