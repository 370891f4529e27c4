"""What a sandbox takes and gives."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal, Protocol, runtime_checkable

from quintain.interface.errors import InputError

MEBIBYTE = 1 << 20

Ended = Literal[
    "exit",  # it ended by itself, with the exit status in `exit`
    "signal",  # a signal ended it (a crash, or its own doing)
    "timeout",  # it ran past `Limits.seconds`
    "cpu",  # a process used more than `Limits.cpu_seconds`
    "memory",  # it ran out of `Limits.memory_bytes`
    "output",  # it printed more than `Limits.output_bytes`; what fits is kept
    "processes",  # it had more than `Limits.processes` processes
]
"""How a program ended. A limit that the operating system reports to the program itself (a full disk, no more
processes, a file too large, a refused system call) is an error inside the program, and ends as `exit`."""


@dataclass(frozen=True, slots=True)
class Limits:
    """What one program may use.

    Attributes:
        seconds: wall seconds.
        cpu_seconds: processor seconds of each process, rounded up to whole ones.
        memory_bytes: address space of each process on top of the warm interpreter, and resident memory of all
            of the program's processes together.
        output_bytes: standard output and standard error together.
        processes: processes and threads at the same time.
        file_bytes: size of one file.
    """

    seconds: float = 10.0
    cpu_seconds: float = 10.0
    memory_bytes: int = 512 * MEBIBYTE
    output_bytes: int = MEBIBYTE
    processes: int = 32
    file_bytes: int = 64 * MEBIBYTE

    def __post_init__(self) -> None:
        for name in self.__dataclass_fields__:
            if not getattr(self, name) > 0:
                raise InputError(f"sandbox limit {name} is {getattr(self, name)}; it must be above 0")


@dataclass(frozen=True, slots=True)
class Program:
    """A program: Python source, or the arguments of a command.

    Attributes:
        source: Python source; runs in a fork of the warm interpreter, as `__main__`.
        argv: a command and its arguments; the command is looked up on the sandbox's PATH.
        stdin: bytes on standard input.
        limits: what it may use.

    Raises:
        InputError: both or neither of `source` and `argv` are given.
    """

    source: str = ""
    argv: tuple[str, ...] = ()
    stdin: bytes = b""
    limits: Limits = field(default_factory=Limits)

    def __post_init__(self) -> None:
        if bool(self.source) == bool(self.argv):
            raise InputError("a program is either Python source or an argv; give exactly one of them")


@dataclass(frozen=True, slots=True)
class ProgramResult:
    """What a program did.

    Attributes:
        stdout: standard output.
        stderr: standard error.
        exit: exit status; None unless `ended` is `exit`.
        ended: how it ended.
        seconds: wall seconds.
        confined: False if it ran in an `Unconfined` sandbox.
        signal: number of the signal that ended it; 0 unless `ended` is `signal`.
    """

    stdout: bytes
    stderr: bytes
    exit: int | None
    ended: Ended
    seconds: float
    confined: bool
    signal: int = 0

    @property
    def ok(self) -> bool:
        """True if it ended by itself with status 0."""
        return self.exit == 0


@runtime_checkable
class Sandbox(Protocol):
    """Runs programs one after another; they share a scratch folder and nothing else.

    Implementations: `Bubblewrap`, `Container` and `Unconfined`.
    """

    async def run(self, program: Program) -> ProgramResult:
        """Runs a program to its end.

        Whatever the program does ends as a result, within its limits.

        Raises:
            InfraError: the sandbox itself broke, or is closed.
        """
        ...

    async def read(self, path: str) -> bytes:
        """A file of the scratch folder.

        Raises:
            OSError: there is no such file, it is no regular file, or it lies outside the scratch folder.
            InfraError: as in `run`.
        """
        ...

    async def write(self, path: str, data: bytes) -> None:
        """Writes a file of the scratch folder, and the folders above it.

        Raises:
            OSError: the scratch folder is full, or the path lies outside of it.
            InfraError: as in `run`.
        """
        ...

    async def close(self) -> None:
        """Ends every process and forgets the scratch folder."""
        ...
