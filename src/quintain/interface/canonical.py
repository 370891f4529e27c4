"""Canonical JSON (RFC 8785) and digests of it."""

from __future__ import annotations

import hashlib
from typing import Any

import rfc8785


def canonical_json(value: Any) -> bytes:
    """JSON with one spelling only, by RFC 8785.

    Raises:
        ValueError: the value has no JSON form (a non-finite float, an integer beyond 2**53, bytes).
    """
    return rfc8785.dumps(value)


def digest(value: Any) -> str:
    """`sha256:` and the hash of the canonical JSON."""
    return digest_bytes(canonical_json(value))


def digest_bytes(data: bytes) -> str:
    """`sha256:` and the hash of bytes."""
    return "sha256:" + hashlib.sha256(data).hexdigest()
