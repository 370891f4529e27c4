"""Runs programs an agent wrote: confined by bubblewrap, or, asked for by name, unconfined."""

from quintain.harness.sandbox.confined import Bubblewrap
from quintain.harness.sandbox.mechanism import CannotConfine
from quintain.harness.sandbox.program import Ended, Limits, Program, ProgramResult, Sandbox
from quintain.harness.sandbox.unconfined import Unconfined

__all__ = ["Bubblewrap", "CannotConfine", "Ended", "Limits", "Program", "ProgramResult", "Sandbox", "Unconfined"]
