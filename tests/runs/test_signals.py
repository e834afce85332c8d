"""Ctrl-C reaches a run whenever it is pressed."""

import os
import signal
import threading

import pytest

from vqelites.runs.signals import interrupts


@pytest.mark.parametrize("moment", ["begins", "ends"])
def test_ctrl_c_while_watching_begins_or_ends_is_not_lost(moment, monkeypatch):
    """It was, while handlers were changed and nobody was woken: the process then waited for another."""
    real = signal.set_wakeup_fd

    def pressed_meanwhile(fd, **options):
        pressed = fd == -1 if moment == "ends" else fd != -1
        if pressed and moment == "begins":
            os.kill(os.getpid(), signal.SIGINT)
        before = real(fd, **options)
        if pressed and moment == "ends":
            os.kill(os.getpid(), signal.SIGINT)
        return before

    monkeypatch.setattr(signal, "set_wakeup_fd", pressed_meanwhile)
    with pytest.raises(KeyboardInterrupt), interrupts(print, lambda: None):
        pass
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_whoever_waits_for_ctrl_c_goes_on_and_is_told_nothing():
    said = []
    with interrupts(said.append, lambda: None) as asked:
        threading.Timer(0.1, os.kill, (os.getpid(), signal.SIGINT)).start()
        asked.wait()
    assert asked()
    assert said == []


def test_a_run_that_is_asked_to_stop_says_what_it_does():
    said, told = [], threading.Event()
    with interrupts(lambda text: (said.append(text), told.set()), lambda: None) as asked:
        os.kill(os.getpid(), signal.SIGINT)
        assert told.wait(60)
        assert asked()
    assert said[0].startswith("Finishing this chunk")
