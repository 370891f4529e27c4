"""Text taken apart: folding, words and Chinese characters, for search, matching and deduplication."""

from __future__ import annotations

import re
import unicodedata

_WORD = re.compile(r"[㐀-鿿]+|[^\W_㐀-鿿]+")


def fold(text: str) -> str:
    """Text without case, accents and width variants (Unicode NFKD and case folding)."""
    decomposed = unicodedata.normalize("NFKD", text)
    return "".join(char for char in decomposed if not unicodedata.combining(char)).casefold()


def words(text: str) -> list[str]:
    """Words of the folded text; a run of Chinese characters gives its characters and character pairs.

    >>> words("São Tomé 德国人")
    ['sao', 'tome', '德', '国', '人', '德国', '国人']
    """
    found: list[str] = []
    for run in _WORD.findall(fold(text)):
        if "㐀" <= run[0] <= "鿿":
            found += [*run, *(run[at : at + 2] for at in range(len(run) - 1))]
        else:
            found.append(run)
    return found


def encodable(text: str) -> str:
    """The text with half characters, which JSON escapes and file names can hold and UTF-8 cannot, replaced by `?`."""
    return text.encode("utf-8", "replace").decode()


def has_chinese(text: str) -> bool:
    """True if a Chinese character stands in the text."""
    return any("㐀" <= char <= "鿿" for char in text)


def language_of(text: str) -> str:
    """`zh` if at least a fifth of the letters are Chinese characters, else `en`; other languages are not told apart.

    >>> language_of("德国（Germany）的首都是柏林。"), language_of("Berlin (柏林) is the capital of Germany.")
    ('zh', 'en')
    """
    letters = [char for char in text if char.isalpha()]
    chinese = sum(1 for char in letters if has_chinese(char))
    return "zh" if chinese * 5 >= len(letters) > 0 else "en"
