"""Attempts to break out of a sandbox or to harm what is outside: small programs and what each must end as.

A program prints REACHED where it got what it wanted, and `refused` with the error where it did not. `w` holds what
there is to reach: made by the test, alive on the host while the program runs.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from quintain.harness.sandbox import Limits

MIB = 1 << 20
ROOM = Limits(seconds=5.0, memory_bytes=128 * MIB, output_bytes=64 << 10, processes=16, file_bytes=4 * MIB)
SHORT = Limits(seconds=0.4, memory_bytes=128 * MIB, output_bytes=64 << 10, processes=16, file_bytes=4 * MIB)
CPU = Limits(seconds=30.0, cpu_seconds=1)

PRELUDE = """
import ctypes, errno, json, os, signal, socket, subprocess, sys, threading, time
w = json.load(sys.stdin)
libc = ctypes.CDLL(None, use_errno=True)
buffer = ctypes.create_string_buffer(4096)

def reached(what):
    print("REACHED", str(what)[:80], flush=True)

def refused(number):
    print("refused", errno.errorcode.get(number, number), flush=True)

def tried(action, count=False):
    try:
        got = action()
    except OSError as error:
        return refused(error.errno)
    reached(got)

def call(number, *arguments):
    result = libc.syscall(number, *arguments)
    reached(result) if result >= 0 else refused(ctypes.get_errno())

def survive():
    open("survivor", "w").close()
    os.execv("/bin/sleep", [w["mark"], "300"])

"""


@dataclass(frozen=True)
class Attack:
    """One attempt.

    Attributes:
        name: what is attempted.
        source: the program, after `PRELUDE`.
        ended: how it may end.
        limits: what it may use.
        says: what its output or errors must hold.
        control: it reaches its aim where nothing confines it, so that a slip in the program can't pass for safety.
    """

    name: str
    source: str
    ended: tuple[str, ...] = ("exit",)
    limits: Limits = field(default=ROOM)
    says: str = ""
    control: bool = False


def aim(name: str, source: str, **options: object) -> Attack:
    """An attempt that must be refused with an error."""
    return Attack(name, source, says="refused", **options)  # type: ignore[arg-type]


def reads(name: str, path: str, **options: object) -> Attack:
    """An attempt to read a path."""
    return aim(f"read {name}", f"tried(lambda: open({path}, 'rb').read(64))", **options)
