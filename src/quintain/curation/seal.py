"""Sealed pools: encrypted tasks that only evaluation opens, and a log of every time it did.

The tasks are compressed and encrypted with AES-256-GCM (NIST SP 800-38D); the manifest stays readable and is
authenticated with them, so a change of either is noticed. The log beside the file is a chain: every entry carries an
HMAC-SHA-256 over itself and the entry before, keyed by the pool's key. Who has the key can open the pool in other ways,
and who can write the folder can put an older log back: the log is an honest book, not a lock.
"""

from __future__ import annotations

import base64
import fcntl
import getpass
import hashlib
import hmac
import json
import os
import secrets
import socket
import zlib
from collections import Counter
from collections.abc import Sequence
from dataclasses import astuple, dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from quintain.curation.pools import (
    CANARY,
    CANARY_DIGITS,
    CANARY_TAG,
    Manifest,
    check_pool,
    manifest_from_json,
    prompt_hash,
    tasks_digest,
)
from quintain.interface.canonical import canonical_json
from quintain.interface.errors import InputError
from quintain.interface.files import replacing
from quintain.interface.tasks import Task, task_from_json

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM

FORMAT = "quintain sealed pool 1"
KEY_BYTES, NONCE_BYTES = 32, 12
Purpose = Literal["seal", "evaluation", "audit", "probe"]


@dataclass(frozen=True, slots=True)
class Opening:
    """One entry of a pool's log.

    Attributes:
        at: UTC, ISO 8601.
        who: user and machine.
        purpose: `seal` begins the log; `evaluation`; `audit` of a corpus by hand; `probe` for the world's probe calls.
        checkpoint: the model that was measured.
        digest: of the pool.
        chain: HMAC over this entry and the one before.
    """

    at: str
    who: str
    purpose: Purpose
    checkpoint: str
    digest: str
    chain: str = ""


def seal(tasks: Sequence[Task], about: Manifest, path: Path, key_path: Path) -> Manifest:
    """Writes a sealed pool and begins its log. A key file that does not exist is made, readable for its owner alone.

    Args:
        tasks: of the pool.
        about: its manifest; digest, canary and hashes of the prompts are filled in.
        path: of the sealed file.
        key_path: of the key.

    Raises:
        InputError: the pool can't be measured, the file exists, or the key file holds no key.
    """
    check_pool(tasks, f"pool {about.name!r}")
    for taken in (path, log_path(path)):
        if taken.exists():
            raise InputError(f"{taken} exists; a sealed pool is never overwritten, give another --out")
    canary = CANARY + secrets.token_hex(CANARY_DIGITS // 2)
    marked = [replace(task, tags=(*task.tags, CANARY_TAG + canary)) for task in tasks]
    hashes = frozenset(prompt_hash(canary, task.prompt) for task in marked)
    filled = {"tasks": len(marked), "digest": tasks_digest(marked), "canary": canary, "prompts": hashes}
    manifest = about.model_copy(update=filled)
    key = _make_key(key_path)
    nonce = secrets.token_bytes(NONCE_BYTES)
    plain = zlib.compress(canonical_json([task.to_json() for task in marked]))
    data = _cipher(key).encrypt(nonce, plain, _header(manifest, key))
    record = {
        "format": FORMAT,
        "key": key_id(key),
        "manifest": manifest.to_json(),
        "nonce": nonce.hex(),
        "data": base64.b64encode(data).decode(),
    }
    _write(path, json.dumps(record, ensure_ascii=False, indent=1).encode() + b"\n", 0o644)
    _log(path, key, _entry("seal", "", manifest))
    return manifest


def sealed_manifest(path: Path) -> Manifest:
    """The manifest of a sealed pool, which is not opened.

    Raises:
        InputError: there is no such file, or it is no sealed pool.
    """
    return manifest_from_json(json.dumps(_read(path)["manifest"]).encode(), str(path))


def open_pool(path: Path, key_path: Path, purpose: Purpose, checkpoint: str) -> tuple[list[Task], list[Opening]]:
    """Opens a sealed pool and writes that down.

    Args:
        path: of the sealed file.
        key_path: of the key.
        purpose: what it is opened for.
        checkpoint: the model that is measured.

    Returns:
        its tasks, and every entry of the log up to this one.

    Raises:
        InputError: the key is wrong, or file or log are missing, damaged or were tampered with.
    """
    from cryptography.exceptions import InvalidTag

    record, manifest, key = _read(path), sealed_manifest(path), read_key(key_path)
    if record["key"] != key_id(key):
        raise InputError(f"{key_path} is the wrong key for {path}: it is {key_id(key)}, the pool needs {record['key']}")
    try:
        nonce, data = bytes.fromhex(record["nonce"]), base64.b64decode(record["data"], validate=True)
        packed = _cipher(key).decrypt(nonce, data, _header(manifest, key))
    except (InvalidTag, ValueError):
        raise InputError(f"{path} was tampered with or damaged: manifest and tasks don't fit the key's seal") from None
    tasks = [task_from_json(one, str(path)) for one in json.loads(zlib.decompress(packed))]
    return tasks, _log(path, key, _entry(purpose, checkpoint, manifest))


def openings(entries: Sequence[Opening]) -> dict[str, int]:
    """How often a pool was opened, by checkpoint."""
    return dict(Counter(entry.checkpoint for entry in entries if entry.purpose == "evaluation"))


def read_log(path: Path, key: bytes) -> list[Opening]:
    """The log of a sealed pool.

    Raises:
        InputError: it is missing or empty, or an entry was changed, added or taken out.
    """
    log = log_path(path)
    if not log.is_file():
        raise InputError(f"{log}: the log of openings is missing; put it back, a pool without it can't be opened")
    entries: list[Opening] = []
    for number, line in enumerate(log.read_bytes().splitlines(keepends=True), start=1):
        entry = _parsed(line, f"{log}:{number}")
        before = entries[-1].chain if entries else ""
        if not hmac.compare_digest(entry.chain.encode(), _chain(key, before, entry).encode()):
            raise InputError(f"{log}:{number}: the log of openings was changed here; put the original back")
        entries.append(entry)
    if [entry.purpose for entry in entries[:1]] != ["seal"]:
        raise InputError(f"{log}: the log of openings lost its beginning; put the original back")
    return entries


def log_path(path: Path) -> Path:
    """Where the log of a sealed pool lies."""
    return path.with_name(path.name + ".log")


def read_key(path: Path) -> bytes:
    """Reads a key file.

    Raises:
        InputError: it is missing or holds no key.
    """
    if not path.is_file():
        raise InputError(f"key file not found: {path}")
    text = path.read_bytes().strip()
    if len(text) != 2 * KEY_BYTES or not all(byte in b"0123456789abcdef" for byte in text):
        raise InputError(f"{path} holds no key: it must be {2 * KEY_BYTES} hexadecimal digits")
    return bytes.fromhex(text.decode())


def key_id(key: bytes) -> str:
    """A short name of a key that does not give it away."""
    return hashlib.sha256(b"quintain key id" + key).hexdigest()[:16]


def _make_key(path: Path) -> bytes:
    if not path.exists():
        _write(path, secrets.token_hex(KEY_BYTES).encode() + b"\n", 0o600)
    return read_key(path)


def _cipher(key: bytes) -> AESGCM:
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM

    return AESGCM(key)


def _header(manifest: Manifest, key: bytes) -> bytes:
    """What is authenticated with the tasks, without being encrypted."""
    return canonical_json([FORMAT, key_id(key), manifest.to_json()])


def _read(path: Path) -> dict[str, Any]:
    if not path.is_file():
        raise InputError(f"sealed pool not found: {path}")
    try:
        record = json.loads(path.read_bytes())
    except ValueError as error:
        raise InputError(f"{path}: damaged sealed pool: {error}") from None
    needed = {"format", "key", "manifest", "nonce", "data"}
    fits = isinstance(record, dict) and record.keys() == needed and record["format"] == FORMAT
    if not fits or not all(isinstance(record[name], str) for name in needed - {"manifest"}):
        raise InputError(f"{path} is no sealed pool of this version; `quintain pool seal` makes one")
    return dict(record)


def _entry(purpose: Purpose, checkpoint: str, manifest: Manifest) -> Opening:
    who = f"{_user()}@{socket.gethostname()}"
    return Opening(datetime.now(UTC).isoformat(timespec="seconds"), who, purpose, checkpoint, manifest.digest)


def _user() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):  # in a container, a number that no list of users names
        return str(os.getuid())


def _log(path: Path, key: bytes, entry: Opening) -> list[Opening]:
    """Appends an entry, on disk when it returns; two processes take turns."""
    flags = os.O_RDWR | os.O_APPEND | (os.O_CREAT if entry.purpose == "seal" else 0)
    if entry.purpose != "seal":
        read_log(path, key)
    descriptor = os.open(log_path(path), flags, 0o644)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        entries = [] if entry.purpose == "seal" else read_log(path, key)
        if entries and entries[0].digest != entry.digest:
            raise InputError(f"{log_path(path)}: the log of openings is another pool's; put the original back")
        chained = replace(entry, chain=_chain(key, entries[-1].chain if entries else "", entry))
        record = {name: getattr(chained, name) for name in Opening.__slots__}
        os.write(descriptor, json.dumps(record, ensure_ascii=False).encode() + b"\n")
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
    return [*entries, chained]


def _chain(key: bytes, before: str, entry: Opening) -> str:
    fields = [getattr(entry, name) for name in Opening.__slots__ if name != "chain"]
    return hmac.new(key, canonical_json([before, *fields]), hashlib.sha256).hexdigest()


def _parsed(line: bytes, where: str) -> Opening:
    try:
        entry = Opening(**json.loads(line))
    except (ValueError, TypeError):
        entry = None
    if entry is None or not line.endswith(b"\n") or not all(isinstance(one, str) for one in astuple(entry)):
        raise InputError(f"{where}: damaged entry of the log of openings; put the original back")
    return entry


def _write(path: Path, data: bytes, mode: int) -> None:
    """Writes a file in one step, on disk when it returns."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with replacing(path, mode) as file:
        file.write(data)
