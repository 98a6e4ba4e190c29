"""There is no registry: an address is permanent and handed to whoever may talk to it; ids of
children are the only names that are taken and freed."""

import trio
import trio.testing

from antiphon.actors.actor import ActorContext, actor_child
from antiphon.actors.address import Address
from antiphon.supervision.exits import Normal
from antiphon.supervision.spec import Restart, SupervisorSpec
from antiphon.supervision.supervisor import Supervisor
from antiphon.testing.probes import Tree


class Mortal:
    """Ends at the first message."""

    def start(self, me: ActorContext[str]) -> None:
        self._me = me

    def handle(self, message: str) -> None:
        self._me.stop()

    def terminate(self) -> None: ...


async def begin(nursery: trio.Nursery) -> tuple[Supervisor, Address[str]]:
    supervisor = Supervisor(SupervisorSpec(dynamic=True))
    await Tree(supervisor).begin(nursery)
    address: Address[str] = Address("root/a", capacity=4)
    await supervisor.start_child(child_of(address))
    return supervisor, address


def child_of(address: Address[str]):
    return actor_child("a", Mortal, address, restart=Restart.TEMPORARY)


async def quiet() -> None:
    await trio.testing.wait_all_tasks_blocked()


async def test_an_id_is_free_before_its_end_can_be_observed(nursery, autojump_clock) -> None:
    supervisor, first = await begin(nursery)
    second: Address[str] = Address("root/a", capacity=4)
    first.ref.monitor(lambda down: supervisor.start_child_nowait(child_of(second)))

    first.ref.tell("end")
    await quiet()

    assert (first.ref.alive, second.ref.alive) == (False, True)
    assert supervisor.count_children() == 1


async def test_what_is_told_to_a_dying_actor_is_a_dead_letter_and_no_error(
    nursery, autojump_clock
) -> None:
    supervisor, address = await begin(nursery)
    dying: list[bool] = []

    def look(down) -> None:
        dying.append(address.ref.alive)
        address.ref.tell("too late")
        address.ref.tell_system("too late")

    address.ref.monitor(look)
    address.ref.tell("end")
    await quiet()
    address.ref.tell("later still")

    assert dying == [False]
    assert address.mailbox.statistics().dead == 3
    assert address.last_exit == Normal()
    assert supervisor.count_children() == 0
