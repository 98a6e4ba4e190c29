"""One server process: its listening sockets, its signals, its banner and its exit status.

What is served, and how it hangs together, is `app`'s business.
"""

import errno
import gc
import os
import signal
import socket
import sys
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager, suppress
from typing import NoReturn

import structlog
import trio

from antiphon import __version__
from antiphon.app import Listeners, Server
from antiphon.database import claim, opener
from antiphon.errors import RulesError, SettingsError
from antiphon.exposure import check_exposure
from antiphon.http.server import open_listener
from antiphon.live_settings import LiveSettings
from antiphon.logs import configure_logging
from antiphon.pools import Models
from antiphon.reloading import Reload
from antiphon.settings import Settings, parse_bind
from antiphon.supervision.exits import Stopped, describe
from antiphon.supervision.root import Outcome
from antiphon.supervision.stacks import format_stacks

log = structlog.get_logger(__name__)

EXIT_OK = 0
EXIT_FAILED = 1
EXIT_STUCK = 70
"""Something ignored its cancellation; a process manager should start the server anew."""
EXIT_SECOND_SIGNAL = 130


@contextmanager
def listening(settings: Settings) -> Iterator[Listeners]:
    """Bind both addresses. Raises SettingsError when one is taken or not ours."""
    with ExitStack() as stack:
        sockets = {}
        for key in ("bind", "ops_bind"):
            host, port = parse_bind(key, getattr(settings, key))
            try:
                sockets[key] = stack.enter_context(closing(open_listener(host, port)))
            except (OSError, UnicodeError) as error:  # a name that no resolver could take
                reason = (isinstance(error, OSError) and error.strerror) or str(error)
                problem = f"cannot listen on {host}:{port}: {reason}"
                if isinstance(error, OSError) and error.errno == errno.EADDRINUSE:
                    variable = f"ANTIPHON_{key.upper()}"
                    problem += f"; stop what listens there, or give another address in {variable}"
                raise SettingsError(key, problem) from error
        yield Listeners(api=sockets["bind"], ops=sockets["ops_bind"])


def serve(
    settings: Settings,
    models: Models,
    reread: Callable[[], Settings],
    *,
    reload_first: Callable[[], bool] = lambda: False,
) -> int:
    """Run the server until it is told to stop; the exit status for the process. `reread` makes the
    settings anew for a reload; `reload_first` says whether one was asked for before.

    Raises SettingsError when an address can't be bound, or must not be, or when the database has
    another server.
    """
    live = LiveSettings(settings, reread, _relog)
    check_exposure(settings, opener(settings))
    with listening(settings) as listeners, claim(settings):
        outcome = trio.run(_serve, live, models, listeners, reload_first)
    if isinstance(outcome.exit, Stopped):
        return EXIT_OK
    log.critical("server_failed", reason=describe(outcome.exit))
    return EXIT_FAILED


async def _serve(
    live: LiveSettings,
    models: Models,
    listeners: Listeners,
    reload_first: Callable[[], bool],
) -> Outcome:
    stop = trio.Event()
    # One that waits says it all: it will see whatever the file holds then.
    ask, asked = trio.open_memory_channel[str](1)
    with trio.open_signal_receiver(signal.SIGTERM, signal.SIGINT, signal.SIGHUP) as signals:
        server = Server(live, models, listeners)
        if reload_first():
            ask.send_nowait(signal.SIGHUP.name)

        def ready() -> None:
            _freeze()
            _say_ready(server.names, listeners)

        async with trio.open_nursery() as nursery:
            nursery.start_soon(_watch_signals, signals, stop, ask, server)
            nursery.start_soon(_reload_when_asked, asked, server.reload)
            outcome = await server.run(stop, ready)
            nursery.cancel_scope.cancel("the tree has ended")
    if outcome.stuck:
        # From here, since trio.run returns only when the last task has ended.
        log.critical(
            "stuck_at_exit", paths=outcome.stuck, exit_status=EXIT_STUCK, stacks=format_stacks()
        )
        _exit_now(EXIT_STUCK, server)
    return outcome


async def _watch_signals(
    signals: AsyncIterator[int],
    stop: trio.Event,
    ask: trio.MemorySendChannel[str],
    server: Server,
) -> None:
    """SIGHUP reloads the settings and the rules. Of the others the first one drains, a second one
    ends the process now."""
    async for number in signals:
        name = signal.Signals(number).name
        if number == signal.SIGHUP:
            with suppress(trio.WouldBlock):
                ask.send_nowait(name)
            continue
        if stop.is_set():
            log.warning("stop_forced", signal=name)
            _exit_now(EXIT_SECOND_SIGNAL, server)
        log.info("stop_requested", signal=name)
        stop.set()


async def _reload_when_asked(asked: trio.MemoryReceiveChannel[str], reload: Reload) -> None:
    """Beside the signals, since a disk that doesn't answer must not hold up a stop."""
    async for source in asked:
        with suppress(SettingsError, RulesError):  # it is in the log
            await reload.reload(source)


def _relog(settings: Settings) -> None:
    configure_logging(settings.log_level, settings.log_format, sys.stderr)


def _exit_now(exit_status: int, server: Server) -> NoReturn:
    """End the process without waiting for anything in it, and its child processes too."""
    for pid in server.pids():
        with suppress(ProcessLookupError):
            os.killpg(pid, signal.SIGKILL)
    os._exit(exit_status)


def _freeze() -> None:
    """What exists now lives as long as the process. Looking through it again at every full
    collection would stall all streams for tens of milliseconds each time."""
    gc.collect()
    gc.freeze()


def _say_ready(names: Sequence[str], listeners: Listeners) -> None:
    """What a newcomer needs next, on standard output; logs go to standard error."""
    name, more = names[0], "".join(f", {each}" for each in names[1:])
    api, ops = (_address(sock) for sock in (listeners.api, listeners.ops))
    log.info("server_ready", version=__version__, model=name, api=api, ops=ops)
    _print(
        f"\nAntiphon {__version__} is ready.\n"
        f"  API         http://{api}/v1\n"
        f"  operations  http://{ops}/health/ready   /metrics   /ops\n"
        f"  chat        http://{api}/ in a browser, or `antiphon chat`\n"
        f"  model{'s' if more else ' '}      {name}{more}\n\n"
        f"Try it:\n"
        f"  curl -N http://{api}/v1/chat/completions -H 'Content-Type: application/json' "
        f'-d \'{{"model": "{name}", "stream": true, "messages": '
        f'[{{"role": "user", "content": "What is the capital of France?"}}]}}\'\n\n'
    )


def _print(text: str) -> None:
    """To whoever still reads standard output: a server doesn't depend on that."""
    if sys.stdout is None:
        return
    try:
        sys.stdout.write(text)
        sys.stdout.flush()
    except OSError as error:
        log.warning("banner_unread", reason=error.strerror)
        # What is left in the buffer would fail again at exit, and spoil the exit status.
        with open(os.devnull, "w") as nowhere:
            os.dup2(nowhere.fileno(), sys.stdout.fileno())


def _address(sock: socket.socket) -> str:
    host, port = sock.getsockname()[:2]
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
