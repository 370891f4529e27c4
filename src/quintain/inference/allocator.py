"""glibc's allocator, told to keep the memory that tensors free."""

from __future__ import annotations

import ctypes
import platform

_M_TRIM_THRESHOLD = -1
_M_MMAP_THRESHOLD = -3
_KEEP = 2**31 - 1


def tune_allocator() -> None:
    """Raises glibc's mmap and trim thresholds; does nothing where the C library is another.

    By default glibc maps every block above 32 MiB afresh and hands it back on free, so each large
    activation pays for page faults and zeroed pages again at every step. Call it before model work starts.
    """
    if platform.libc_ver()[0] != "glibc":
        return
    libc = ctypes.CDLL(None)
    libc.mallopt(_M_MMAP_THRESHOLD, _KEEP)
    libc.mallopt(_M_TRIM_THRESHOLD, _KEEP)
