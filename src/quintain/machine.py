"""Settings of the process that make float32 models faster on CPUs and change nothing else.

Memory: by default glibc gets each large block from `mmap` and returns it on free, so every tensor of a few
megabytes is zeroed and faulted in page by page, again and again: up to 1.8x of a training step.

Products: PyTorch sends float32 products to MKL, which leaves AVX-512 unused on processors that are not Intel's.
oneDNN uses it: 2.3x the rate on a Zen 5 core. It compiles a kernel for each shape and keeps it: see `bound_kernels`.
"""

from __future__ import annotations

import ctypes
import gc
import os
import sys
from pathlib import Path

import torch

_M_TRIM_THRESHOLD, _M_TOP_PAD, _M_MMAP_MAX = -1, -2, -4  # <malloc.h>
_NEVER = -1
_TOP_PAD_BYTES = 64 * 2**20
_KERNELS = "64"
"""More than the shapes of one microbatch, which all layers share; about 40 MB for a 135M model."""
_EXACT = 1e-5
"""Relative error of a product that float32 explains: bfloat16 inside gives some 3e-3."""


def tune() -> None:
    """Makes this process fast; call it before the first model is used, as often as you like."""
    keep_freed_memory()
    bound_kernels()
    use_fast_products()


def keep_freed_memory() -> bool:
    """Lets this process reuse its freed memory instead of returning it.

    The process's resident size then stays at its peak, and creeps up where sizes vary: see `give_back_memory`.

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


def give_back_memory() -> None:
    """Returns what is free now to the kernel, from every thread's heap.

    Trees and caches differ in size from step to step, so the holes between the blocks of one step do not fit those
    of the next, and a heap that is never trimmed grows: 16 GB after twelve GRPO steps of a 135M model. Once
    a step costs little beside the step.
    """
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None) if sys.platform.startswith("linux") else None
    if trim is not None:
        trim(0)


def free_last_model() -> None:
    """Frees what a model that is used no more left, and returns it to the kernel; call it before the next is loaded."""
    gc.collect()  # optimisers and graphs hold one another
    give_back_memory()


def bound_kernels() -> None:
    """Bounds the kernels that oneDNN, and PyTorch on top of it and in each thread, keep for shapes they have seen.

    Both keep 1,024 by default, half a megabyte and more each, and almost every tree has a length of its own, with
    some ten shapes: each new length added 4 to 8 MB to the heap. Both read their bound at the first product, and what
    a person has set stays. (The same of convolutions: pytorch/pytorch issue 98688.)
    """
    os.environ.setdefault("ONEDNN_PRIMITIVE_CACHE_CAPACITY", _KERNELS)
    os.environ.setdefault("LRU_CACHE_CAPACITY", _KERNELS)


def use_fast_products() -> bool:
    """Sends float32 products on the CPU to oneDNN where MKL is slow and oneDNN is as exact.

    PyTorch's only switch for it is the permission to round to bfloat16 inside. oneDNN makes use of the permission
    on processors with AMX alone; a product is compared with its float64 value, and the switch is left off there.

    Returns:
        Whether products go to oneDNN now.
    """
    if torch.backends.cpu.get_cpu_capability() != "AVX512" or not _made_by_amd():
        return False
    switch = torch.backends.mkldnn.matmul  # type: ignore[attr-defined]
    before = switch.fp32_precision
    switch.fp32_precision = "bf16"
    if _relative_error() > _EXACT:
        switch.fp32_precision = before
    return bool(switch.fp32_precision == "bf16")


def _made_by_amd() -> bool:
    cpuinfo = Path("/proc/cpuinfo")
    return cpuinfo.exists() and "AuthenticAMD" in cpuinfo.read_text()


def _relative_error() -> float:
    generator = torch.Generator().manual_seed(0)
    left, right = torch.randn(64, 512, generator=generator), torch.randn(512, 64, generator=generator)
    exact = left.double() @ right.double()
    return float((left @ right - exact).norm() / exact.norm())
