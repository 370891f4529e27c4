"""Texts as arrays of hashed tokens: what the contamination scan compares, made fast enough for a corpus.

A token is a maximal run of letters and digits, or one Chinese or Japanese character (those scripts do not
separate words). Case, width and accents are folded; everything else separates tokens. Numbers are
additionally *masked*: all of them look the same, and neighbouring ones are one token, so that a changed
number changes nothing. All steps are numpy operations over code points, none is a Python loop over tokens.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np
from numpy.typing import NDArray

Hashes = NDArray[np.uint64]
Positions = NDArray[np.int64]

CODE_POINTS = 0x110000
_ASSIGNED = 0x33480
"""Letters end here: planes 3 and up hold rare ideographs and nothing else a text is made of."""
_SOLO, _DIGIT, _MARK = np.uint32(1 << 31), np.uint32(1 << 30), np.uint32(1 << 29)
_LETTER = np.uint64((1 << 29) - 1)
_BASE = 0x9E3779B97F4A7C15
NUMBER = np.uint64(0xD6E8FEB86659FD93)
"""What every number is masked with."""
_SEPARATOR = "\n"


@dataclass(frozen=True, slots=True)
class Tokens:
    """Tokens of several texts, one after the other.

    Attributes:
        joined: the texts, joined by one separator.
        places: where each text begins in `joined`, and where one more would `[texts + 1]`.
        starts: where each token begins in `joined` `[T]`.
        raw: hash of each token `[T]`.
        masked: the same with all numbers alike `[T]`.
        words: what each token counts as: 1, and a character of a script without spaces 0.5 `[T]`.
        bounds: tokens `bounds[i]` to `bounds[i + 1]` are those of text i `[texts + 1]`.
    """

    joined: str
    places: Positions
    starts: Positions
    raw: Hashes
    masked: Hashes
    words: NDArray[np.float64]
    bounds: Positions

    def text_of(self, tokens: Positions) -> Positions:
        """Which text each of these tokens belongs to."""
        return np.searchsorted(self.bounds, tokens, side="right") - 1

    def excerpt(self, first: int, last: int) -> str:
        """The text from token `first` up to and including token `last`, which belong to one text."""
        text = int(self.text_of(np.array([first]))[0])
        ends = last + 1 == self.bounds[text + 1]
        stop = self.places[text + 1] - len(_SEPARATOR) if ends else self.starts[last + 1]
        return self.joined[self.starts[first] : stop].strip()


def tokenize(texts: Sequence[str]) -> Tokens:
    """Splits texts into hashed tokens."""
    joined = _SEPARATOR.join(texts)
    points = _points(joined)
    values = _values()[points]
    if (values & _MARK).any():  # composed and decomposed letters are one
        texts = [_composed(text) for text in texts]
        joined = _SEPARATOR.join(texts)
        values = _values()[_points(joined)]
    lengths = np.fromiter((len(text) + len(_SEPARATOR) for text in texts), np.int64, len(texts))
    places = np.concatenate(([0], np.cumsum(lengths)))
    starts, raw = _words(values)
    number = (values[starts] & _DIGIT) != 0
    first = np.searchsorted(starts, places)
    kept = ~number
    kept[1:] |= ~number[:-1]
    kept[:1] = True
    kept[first[:-1][first[:-1] < len(starts)]] = True
    bounds = np.concatenate(([0], np.cumsum(kept)))[first]
    masked = np.where(number, NUMBER, raw)
    words = np.where(values[starts] < _SOLO, 1.0, 0.5)  # a Chinese word has about two characters
    return Tokens(joined, places, starts[kept], raw[kept], masked[kept], words[kept], bounds)


def grams(hashes: Hashes, n: int) -> Hashes:
    """Hash of every run of `n` tokens `[T - n + 1]`; runs across two texts are among them."""
    count = max(0, len(hashes) - n + 1)
    total = np.zeros(count, np.uint64)
    for place, factor in enumerate(_factors(n)):
        total += hashes[place : place + count] * factor
    return total


def _points(text: str) -> NDArray[np.uint32]:
    return np.frombuffer(text.encode("utf-32-le", "surrogatepass"), dtype="<u4")


def _words(values: NDArray[np.uint32]) -> tuple[Positions, Hashes]:
    """Where tokens begin, and a polynomial hash of each."""
    inside = values != 0
    solo = values >= _SOLO
    begins = inside.copy()
    begins[1:] &= ~inside[:-1] | solo[1:] | solo[:-1]
    starts = np.flatnonzero(begins)
    if not len(starts):
        return starts, np.empty(0, np.uint64)
    powers, inverses = _powers(_room(len(values)))
    weighed = (values & np.uint32(_LETTER)) * powers[: len(values)]
    return starts, _mixed(np.add.reduceat(weighed, starts) * inverses[starts])


def _mixed(hashes: Hashes) -> Hashes:
    """Spreads the bits (the finaliser of SplitMix64), so that sums of hashes stay apart."""
    hashes ^= hashes >> np.uint64(30)
    hashes *= np.uint64(0xBF58476D1CE4E5B9)
    hashes ^= hashes >> np.uint64(27)
    hashes *= np.uint64(0x94D049BB133111EB)
    hashes ^= hashes >> np.uint64(31)
    return hashes


def _composed(text: str) -> str:
    folded = unicodedata.normalize("NFKC", text)
    values = _values()
    return "".join(char for char in folded if not values[ord(char)] & _MARK)


@cache
def _values() -> NDArray[np.uint32]:
    """For each code point 0 (a separator), or its folded letter with flags."""
    table = np.zeros(CODE_POINTS, np.uint32)
    for point in range(_ASSIGNED):
        char = chr(point)
        if char.isalnum():
            letter = unicodedata.normalize("NFKD", char)[0].casefold()[0]
            table[point] = np.uint32(ord(letter)) | (_SOLO if _solo(point) else _DIGIT if letter.isdigit() else 0)
        elif unicodedata.category(char) in ("Mn", "Cf"):
            table[point] = _MARK
    return table


def _solo(point: int) -> bool:
    """True for scripts without spaces between words: kana and ideographs."""
    return 0x3040 <= point <= 0x30FF or 0x3400 <= point <= 0x9FFF or 0xF900 <= point <= 0xFAFF or point >= 0x20000


def _room(length: int) -> int:
    return 1 << max(16, (length - 1).bit_length())


@cache
def _powers(count: int) -> tuple[Hashes, Hashes]:
    """Powers of an odd number modulo 2**64, and of its inverse."""
    return _progression(_BASE, count), _progression(pow(_BASE, -1, 1 << 64), count)


def _progression(base: int, count: int) -> Hashes:
    steps = np.full(count, base, np.uint64)
    steps[0] = 1
    return np.cumprod(steps, dtype=np.uint64)


@cache
def _factors(n: int) -> list[np.uint64]:
    return [np.uint64(pow(0xC2B2AE3D27D4EB4F, place + 1, 1 << 64)) for place in range(n)]
