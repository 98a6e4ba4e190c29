"""A door in front of a server: TCP through and through, whose connections a test may cut, and which
may swallow what begins in a certain way, or lose what is answered."""

import contextlib
import selectors
import socket
import threading
from collections.abc import Iterator

Address = tuple[str, int]
_PIECE_BYTES = 65_536


class CutProxy:
    """`api` is where clients go. `swallowed` and `lost` are set when something was."""

    def __init__(self, listener: socket.socket, to: Address) -> None:
        self._listener = listener
        self._to = to
        self._pairs: set[tuple[socket.socket, socket.socket]] = set()
        self._lock = threading.Lock()
        self._swallows: bytes | None = None
        self._loses: bytes | None = None
        self.swallowed = threading.Event()
        self.lost = threading.Event()
        self.api = "http://{}:{}".format(*listener.getsockname()[:2])

    def swallow(self, beginning: bytes | None) -> None:
        """From now on a request that begins so never arrives, and its connection hangs."""
        self._swallows = beginning

    def lose(self, mark: bytes) -> None:
        """The next piece of an answer that has this in it never arrives, and its connection
        ends."""
        self._loses = mark

    def cut(self) -> int:
        """Every connection there is; how many."""
        with self._lock:
            pairs, self._pairs = self._pairs, set()
        for pair in pairs:
            for end in pair:
                with contextlib.suppress(OSError):
                    end.shutdown(socket.SHUT_RDWR)
        return len(pairs)

    def close(self) -> None:
        """Nobody comes in any more either."""
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self.cut()

    def serve(self) -> None:
        """Until it is closed."""
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            threading.Thread(target=self._carry, args=(client,), daemon=True).start()

    def _carry(self, client: socket.socket) -> None:
        with client, contextlib.suppress(OSError), socket.create_connection(self._to) as server:
            pair = (client, server)
            with self._lock:
                self._pairs.add(pair)
            try:
                self._pass_on(client, server)
            finally:
                with self._lock:
                    self._pairs.discard(pair)

    def _pass_on(self, client: socket.socket, server: socket.socket) -> None:
        with selectors.DefaultSelector() as selector:
            selector.register(client, selectors.EVENT_READ, server)
            selector.register(server, selectors.EVENT_READ, client)
            is_swallowing = False
            while True:
                for key, _ in selector.select():
                    source, target = key.fileobj, key.data
                    assert isinstance(source, socket.socket)
                    data = source.recv(_PIECE_BYTES)
                    if not data:
                        return
                    if self._loses and source is server and self._loses in data:
                        self._loses = None
                        self.lost.set()
                        return
                    if self._swallows and source is client and data.startswith(self._swallows):
                        is_swallowing = True
                    if is_swallowing and source is client:
                        self.swallowed.set()
                    else:
                        target.sendall(data)


@contextlib.contextmanager
def cut_proxy(to: Address) -> Iterator[CutProxy]:
    """Open for the length of the block."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        proxy = CutProxy(listener, to)
        thread = threading.Thread(target=proxy.serve, name="cut proxy")
        thread.start()
        try:
            yield proxy
        finally:
            proxy.close()
            thread.join()
