"""Runs programs an agent wrote: confined by bubblewrap or in a container, or, asked for by name, unconfined."""

from quintain.harness.sandbox.confined import Bubblewrap
from quintain.harness.sandbox.container import Container
from quintain.harness.sandbox.mechanism import CannotConfine
from quintain.harness.sandbox.program import Ended, Limits, Program, ProgramResult, Sandbox
from quintain.harness.sandbox.unconfined import Unconfined

__all__ = [
    "Bubblewrap",
    "CannotConfine",
    "Container",
    "Ended",
    "Limits",
    "Program",
    "ProgramResult",
    "Sandbox",
    "Unconfined",
]
