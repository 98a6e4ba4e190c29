"""How a child ended: frozen values, and the one function that turns a raised exception into them.

Values hold formatted text and never the exception: a traceback pins frames and all they refer to.
"""

import traceback
from dataclasses import dataclass

import trio

_MESSAGE_LENGTH = 500


@dataclass(frozen=True, slots=True)
class Normal:
    """Returned by itself."""


@dataclass(frozen=True, slots=True)
class Stopped:
    """Ended because it was told to, within its grace."""


@dataclass(frozen=True, slots=True)
class Ignored:
    """Declined to run. A child says so by returning this value before it is ready."""


@dataclass(frozen=True, slots=True)
class Crashed:
    """Raised. `kind` is the class name, `trace` the formatted traceback."""

    kind: str
    message: str = ""
    trace: str = ""


@dataclass(frozen=True, slots=True)
class InitFailed:
    """Raised, returned or ran out of time before it was ready."""

    kind: str
    message: str = ""
    trace: str = ""


@dataclass(frozen=True, slots=True)
class Killed:
    """Was cancelled: its grace ran out, or it had none."""


@dataclass(frozen=True, slots=True)
class Stuck:
    """Ignored its cancellation. `paths` names who: the child itself, or tasks below it."""

    paths: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Interrupted:
    """KeyboardInterrupt or SystemExit: the whole tree stops in order, nothing restarts."""

    kind: str
    message: str = ""


Exit = Normal | Stopped | Ignored | Crashed | InitFailed | Killed | Stuck | Interrupted


def is_abnormal(exit: Exit) -> bool:
    """Whether a transient child that ended like this by itself is restarted."""
    return not isinstance(exit, Normal | Stopped | Ignored)


def exit_of(error: BaseException) -> Crashed | Interrupted | None:
    """Classify what a child raised; None when it is nothing but somebody else's cancellation.

    Total over BaseException. A group that holds a real error beside Cancelled is a crash.
    """
    leaves = _leaves(error)
    real = [leaf for leaf in leaves if not isinstance(leaf, trio.Cancelled)]
    if not real:
        return None
    for leaf in real:
        if isinstance(leaf, KeyboardInterrupt | SystemExit):
            return Interrupted(type(leaf).__name__, str(leaf)[:_MESSAGE_LENGTH])
    return Crashed(
        kind="+".join(dict.fromkeys(type(leaf).__name__ for leaf in real)),
        message="; ".join(str(leaf) for leaf in real)[:_MESSAGE_LENGTH],
        trace="".join(traceback.format_exception(error)),
    )


def describe(exit: Exit) -> str:
    """One line for logs and errors: the class, then what is known."""
    match exit:
        case Crashed(kind=kind, message=message) | Interrupted(kind=kind, message=message):
            return f"{kind}: {message}" if message else kind
        case InitFailed(kind=kind, message=message):
            return f"{kind}: {message}" if message else kind
        case Stuck(paths=paths) if paths:
            return f"stuck: {', '.join(paths)}"
        case _:
            return type(exit).__name__.lower()


def _leaves(error: BaseException) -> list[BaseException]:
    if isinstance(error, BaseExceptionGroup):
        return [leaf for member in error.exceptions for leaf in _leaves(member)]
    return [error]
