"""The till in a process of its own, with tools that no thread survives."""

from __future__ import annotations

import ctypes
import os
import re
import signal
import subprocess
import sys
import time

from harness.till import Till
from quintain import Verdict, tool
from quintain.interface.messages import message


class Tower(Till):
    """Every call may end the process it runs in."""

    name = "till"
    isolated = True
    loads = 0

    @classmethod
    def shared(cls, **options):
        cls.loads += 1
        return cls.loads

    @tool
    def spin(self) -> str:
        """Changes the basket, then computes for ever."""
        self.basket.append("half done")
        while True:
            pass

    @tool
    def match(self) -> str:
        """Computes for ever in native code that never lets another thread run."""
        return str(re.match(r"(a+)+$", "a" * 64 + "b"))

    @tool
    def die(self, how: str) -> str:
        """Ends its process."""
        self.basket.append("dying")
        if how == "segfault":
            ctypes.string_at(0)
        if how == "kill":
            os.kill(os.getpid(), signal.SIGKILL)
        os._exit(3)

    @tool
    def die_once(self, marker: str) -> str:
        """Ends its process the first time."""
        try:
            os.close(os.open(marker, os.O_CREAT | os.O_EXCL))
        except FileExistsError:
            return f"{len(self.basket)} in the basket"
        os._exit(3)

    @tool
    def spawn(self) -> int:
        """Starts a program, says its number, and waits for it."""
        program = subprocess.Popen(["sleep", "100"])
        with open(self.prices["file"], "w") as file:
            file.write(str(program.pid))
        return program.wait()

    @tool
    def shout(self) -> str:
        """Writes to both standard streams."""
        print("to stdout", flush=True)
        print("to stderr", file=sys.stderr, flush=True)
        return sys.stdin.read()

    @tool
    def where(self) -> list[int]:
        """The process, and how often it loaded the shared resources."""
        self.resources()
        return [os.getpid(), self.loads]


class Ground(Tower):
    """The same tools without a process of their own."""

    isolated = False


class Judge(Tower):
    """Its verifier and its user live in the child too."""

    def __init__(self, wanted: int = 1) -> None:
        self.wanted = wanted

    def user(self, view):
        assert "put" in view.toolset
        return message("user", "Really?") if not view.user_messages else None

    async def verify(self, task, episode) -> Verdict:
        return Verdict(success=len(self.basket) == self.wanted, reasons=(str(len(self.basket)),))


class SpinningVerifier(Tower):
    """Never comes to a verdict."""

    def verify(self, task, episode) -> Verdict:
        while True:
            pass


class SlowReset(Tower):
    """Hangs in reset."""

    def reset(self, task) -> None:
        time.sleep(100)


class Replaying(Tower):
    """Keeps no snapshots; its calls are run again."""

    snapshots = "replay"
