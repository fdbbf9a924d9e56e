"""Signals that arrive where Python would discard the exception that they raise."""

import gc
import os
import signal
import subprocess
import sys
import time
from types import SimpleNamespace

import pytest

from experiments.launch.signals import SIGNALS, Interrupted, finish_at_once, interruptible


def in_the_collector(number: int) -> None:
    def callback(phase: str, _: dict) -> None:
        if phase == "start":
            gc.callbacks.remove(callback)
            signal.raise_signal(number)

    gc.callbacks.append(callback)
    gc.collect()


class Finalised:
    """An object whose finaliser a signal interrupts."""

    def __init__(self, number: int) -> None:
        self.number = number

    def __del__(self) -> None:
        signal.raise_signal(self.number)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize("meet", [in_the_collector, Finalised, signal.raise_signal])
def test_the_first_signal_ends_a_run_wherever_it_comes(meet, number, capfd) -> None:
    before = signal.getsignal(number), sys.unraisablehook
    with pytest.raises(Interrupted) as raised, interruptible():
        meet(number)
        time.sleep(5)
    assert raised.value.args == (number,)
    assert (signal.getsignal(number), sys.unraisablehook) == before
    assert not capfd.readouterr().err


def test_the_second_signal_ends_at_once(monkeypatch) -> None:
    ended = []
    monkeypatch.setattr(os, "_exit", ended.append)
    with pytest.raises(Interrupted), interruptible():
        try:
            signal.raise_signal(signal.SIGTERM)
        except Interrupted:
            signal.raise_signal(signal.SIGINT)
            raise
    assert ended == [128 + signal.SIGINT]


def test_after_the_work_is_done_a_signal_changes_nothing(monkeypatch) -> None:
    ended, before = [], {number: signal.getsignal(number) for number in SIGNALS}
    monkeypatch.setattr(os, "_exit", ended.append)
    with interruptible():
        finish_at_once()
    for number, handler in before.items():
        signal.raise_signal(number)
        signal.signal(number, handler)
    assert ended == [0, 0]


#: A launcher one of whose threads still saves when the signal comes.
SAVING = """
import asyncio, os, signal, sys, threading, time, traceback
from importlib.machinery import ModuleSpec
from experiments.launch import cli

async def write(seconds):
    try:
        while True:
            await asyncio.to_thread(time.sleep, seconds)
    except RuntimeError:
        traceback.print_exc()

async def save():
    await asyncio.gather(write(0.01), write(1))

def main():
    threading.Thread(target=asyncio.run, args=(save(),), daemon=True).start()
    time.sleep(0.2)
    os.kill(os.getpid(), signal.SIGTERM)
    time.sleep(60)

sys.modules["__main__"].__spec__ = ModuleSpec("experiments.saving", None)
cli.run(main)
"""


@pytest.mark.slow
def test_no_thread_has_a_last_word() -> None:
    command = [sys.executable, "-c", SAVING]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stderr) == (143, "")
    assert done.stdout.strip() == "interrupted; the same command continues from the last checkpoint"


def test_other_errors_that_python_drops_are_told(monkeypatch) -> None:
    unraisable = []
    monkeypatch.setattr(sys, "unraisablehook", unraisable.append)
    with interruptible():
        sys.unraisablehook(SimpleNamespace(exc_value=ValueError("another")))
    assert [str(of.exc_value) for of in unraisable] == ["another"]
