"""What an operator may do to one child of a running tree, named by its path. Only finds the
supervisor that owns the child; every rule about it is that supervisor's."""

from collections.abc import Callable, Mapping

from antiphon.errors import AlreadyPresent, CommandRefused, NoActor
from antiphon.ids import ActorPath
from antiphon.supervision.state import Phase
from antiphon.supervision.supervisor import Supervisor


class Operator:
    """`root` is asked for at each command, since the tree has the listener for commands in it.
    `untouchable` are the paths that take none, each with the reason."""

    def __init__(
        self, root: Callable[[], Supervisor], untouchable: Mapping[ActorPath, str]
    ) -> None:
        self._root = root
        self._untouchable = untouchable

    async def restart(self, path: ActorPath) -> None:
        """Stop a child and start it again, with the siblings its strategy takes along; returns when
        it is up. Raises CommandRefused and what Supervisor.recycle_child raises."""
        owner, id = self._owner(path)
        await owner.recycle_child(id)

    async def stop(self, path: ActorPath) -> None:
        """Stop a child by its own rule; it stays down. Raises CommandRefused and what
        Supervisor.terminate_child raises."""
        owner, id = self._owner(path)
        await owner.terminate_child(id)

    async def start(self, path: ActorPath) -> None:
        """Start a child that is down. Siblings that its strategy takes along begin anew with it,
        since what they know is of an incarnation that is over. Raises what restart raises."""
        owner, id = self._owner(path)
        phase = dict(owner.which_children()).get(id)
        if phase not in (Phase.DOWN, None):
            raise AlreadyPresent(path)
        await owner.recycle_child(id)

    def _owner(self, path: ActorPath) -> tuple[Supervisor, str]:
        if path in self._untouchable:
            raise CommandRefused(path, self._untouchable[path])
        return owner_of(self._root(), path)


def owner_of(root: Supervisor, path: ActorPath) -> tuple[Supervisor, str]:
    """The supervisor that has the child of that path, and the child's id there. Raises NoActor, and
    CommandRefused for the root, which nobody supervises."""
    first, *ids = path.split("/")
    if first != "root":
        raise NoActor(path)
    if not ids:
        raise CommandRefused(path, "stop the root by stopping the process")
    owner = root
    for id in ids[:-1]:
        below = owner.supervisor_below(id)
        if below is None:
            raise NoActor(path)
        owner = below
    if ids[-1] not in dict(owner.which_children()):
        raise NoActor(path)
    return owner, ids[-1]
