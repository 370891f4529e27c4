"""How this process was started."""

from __future__ import annotations

import os


def by_torchrun() -> bool:
    """Whether `torchrun` started it, as one of several or alone."""
    return "TORCHELASTIC_RUN_ID" in os.environ
