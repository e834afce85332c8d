"""Words for whoever waits: what is told of long work."""

from collections.abc import Callable

Observe = Callable[[str], None]
_EVERY = 10.0  # seconds


def silent(text: str) -> None:
    """Say nothing."""


def reminding(say: Observe, what: str) -> Callable[[float], None]:
    """Told again and again how long this goes on, says so every ten seconds."""
    before = 0.0

    def waiting(seconds: float) -> None:
        nonlocal before
        if seconds // _EVERY > before // _EVERY:
            say(f"{what}: {seconds:.0f} s so far.")
        before = seconds

    return waiting
