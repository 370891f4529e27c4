"""The licence of a base model, which what was trained from it inherits."""

from __future__ import annotations

import re
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path

from quintain.inference.models import DEFAULT

_FILES = ("LICENSE*", "LICENCE*", "NOTICE*", "USE_POLICY*")
_FRONT_MATTER = re.compile(r"\A---\n(.*?)\n---\n", re.DOTALL)
_KEY = re.compile(r"^license:\s*['\"]?([\w.+-]+)['\"]?\s*$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Licence:
    """What is known of a base model's licence.

    Attributes:
        identifier: as model cards name it; `other` where it is not known.
        files: texts by file name.
    """

    identifier: str
    files: dict[str, bytes]


def licence_of(base: str) -> Licence:
    """The licence of a base model: a folder, a hub id whose card is in the cache, or the default model."""
    if base == DEFAULT:  # Apache-2.0, as its authors state; this package comes under the same text
        text = metadata.distribution("quintain").read_text("licenses/LICENSE") or ""
        return Licence("apache-2.0", {"LICENSE": text.encode()} if text else {})
    folder = Path(base) if Path(base).is_dir() else _cached(base)
    if folder is None:
        return Licence("other", {})
    files = {path.name: path.read_bytes() for one in _FILES for path in sorted(folder.glob(one)) if path.is_file()}
    card = folder / "README.md"
    front = _FRONT_MATTER.match(card.read_text(encoding="utf-8", errors="replace")) if card.is_file() else None
    named = _KEY.search(front[1]) if front else None
    return Licence(named[1] if named else "other", files)


def _cached(repository: str) -> Path | None:
    """The folder of a model in the hub's cache."""
    from huggingface_hub import try_to_load_from_cache

    found = try_to_load_from_cache(repository, "config.json")
    return Path(found).parent if isinstance(found, str) else None
