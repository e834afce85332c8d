"""Ctrl-C and SIGTERM: the first asks a run to save and stop, a second Ctrl-C ends the process at once."""

import contextlib
import os
import signal
import socket
import threading
from collections.abc import Callable, Iterator

Announce = Callable[[str], None]


class Interrupts:
    """What was asked for so far."""

    def __init__(self) -> None:
        self.signal: int | None = None
        self.saves = True  # whether a signal has something to wait for
        self._came = threading.Event()

    def __call__(self) -> bool:
        """Whether to save and stop."""
        return self.signal is not None

    def wait(self) -> None:
        """Return when a signal has come; nothing is left to save until then."""
        self.saves = False
        self._came.wait()

    def take(self, number: int) -> None:
        """Remember the first signal."""
        self.signal = number
        self._came.set()

    @property
    def exit_code(self) -> int:
        """What shells expect of a process that a signal ended; 0 if none did."""
        return 0 if self.signal is None else 128 + self.signal


@contextlib.contextmanager
def interrupts(announce: Announce, leave: Callable[[], None]) -> Iterator[Interrupts]:
    """Watch for signals; `announce` is told at once what will happen, `leave` is called before the process is ended.

    Python's own handlers wait until compiled code returns, which takes a whole chunk. A thread of its own, woken
    through a socket by the system's handler, does not. A process may be ended at any moment, since files are only ever
    replaced whole.
    """
    asked = Interrupts()
    receiver, sender = socket.socketpair()
    sender.setblocking(False)
    watcher = threading.Thread(target=_watch, args=(receiver, asked, announce, leave), daemon=True)
    with contextlib.ExitStack() as undo:
        watcher.start()
        undo.callback(watcher.join)
        undo.callback(sender.close)
        # The socket before the handlers, and after them at the end: a signal in between would be lost.
        undo.callback(signal.set_wakeup_fd, signal.set_wakeup_fd(sender.fileno(), warn_on_full_buffer=False))
        for number in (signal.SIGINT, signal.SIGTERM):
            undo.callback(signal.signal, number, signal.signal(number, lambda *_: None))
        yield asked


def _watch(receiver: socket.socket, asked: Interrupts, announce: Announce, leave: Callable[[], None]) -> None:
    """Take signals until the other end is closed."""
    with receiver:
        while data := receiver.recv(1):
            number = data[0]
            if asked.signal is None:
                asked.take(number)
                if asked.saves:
                    announce("Finishing this chunk, then saving. Press Ctrl-C again to stop at once.")
            elif number == signal.SIGINT:
                leave()
                announce("Stopped at once. What was saved before is kept.")
                os._exit(128 + number)
