"""Keeps glibc from handing big buffers back to the kernel after every use.

By default glibc gets each large block from `mmap` and returns it on free, so every tensor of a few
megabytes is zeroed and faulted in page by page, again and again: up to 1.8x of a training step on CPU.
"""

from __future__ import annotations

import ctypes
import sys

_M_TRIM_THRESHOLD, _M_TOP_PAD, _M_MMAP_MAX = -1, -2, -4  # <malloc.h>
_NEVER = -1
_TOP_PAD_BYTES = 64 * 2**20


def keep_freed_memory() -> bool:
    """Lets this process reuse its freed memory instead of returning it; call it once, before the first model.

    The process's resident size then stays at its peak.

    Returns:
        False where there is no glibc, and nothing was changed.
    """
    if not sys.platform.startswith("linux"):
        return False
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is None or getattr(ctypes.CDLL(None), "gnu_get_libc_version", None) is None:
        return False
    # The mmap threshold itself is capped at 32 MiB by glibc, too little for logits: switch mmap off instead.
    settings = ((_M_MMAP_MAX, 0), (_M_TRIM_THRESHOLD, _NEVER), (_M_TOP_PAD, _TOP_PAD_BYTES))
    return all(mallopt(name, value) == 1 for name, value in settings)
