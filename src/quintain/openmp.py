"""Gives back a thread's OpenMP team, so that another thread's may spin between its parallel regions.

Every Python thread that runs a parallel torch operation gets a team of helper threads of its own. Between two regions
GNU's OpenMP lets helpers spin for some milliseconds, but only while no more of them exist than CPUs: with a second team
alive, helpers go to sleep at once and waking one costs about 100 us per operation, more than many operations take.
"""

from __future__ import annotations

import ctypes
from functools import cache
from typing import Any

_SOFT = 1  # omp_pause_soft, OpenMP 5.2, section 18.6


def end_team() -> bool:
    """Ends the OpenMP helper threads of the calling thread; its next parallel operation starts new ones (50 us).

    Returns:
        False where torch's OpenMP has no such function, and nothing was changed.
    """
    pause = _pause()
    return pause is not None and pause(_SOFT) == 0


@cache
def _pause() -> Any:
    import torch

    # Looking it up from torch's own library finds the OpenMP runtime that torch was linked with, whichever it is.
    return getattr(ctypes.CDLL(torch._C.__file__), "omp_pause_resource_all", None)
