"""Values that tell the time: right today, wrong tomorrow."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Any

_ZONES = (timedelta(hours=-12), timedelta(0), timedelta(hours=14))
"""From a moment in UTC: what day it is anywhere on Earth."""
_MINUTES = 2
"""A clock time this close to now, in any zone, tells the time."""
_DAY_SECONDS = 86400
_CHINESE_DAYS = "一二三四五六日"


def tells_time(value: Any, now: datetime) -> bool:
    """Whether a value holds the date or the weekday of today, the clock time, or a time stamp of these hours.

    Args:
        value: a text or a number.
        now: the moment, with its zone.

    >>> from datetime import timezone
    >>> now = datetime(2026, 11, 30, 16, 25, tzinfo=timezone.utc)
    >>> [tells_time(one, now) for one in ("30 Nov 2026", "2026-11-30T09:00", "on Monday", "17:26", 1796056000)]
    [True, True, True, True, True]
    >>> [tells_time(one, now) for one in ("2024-05-03", "Friday", "17:40", 2026, "Monaco")]
    [False, False, False, False, False]
    """
    text = str(value).lower()
    numbers = [int(one) for one in re.findall(r"\d{1,14}", text)]
    words = set(re.findall(r"[^\W\d_]+", text))
    days = [now + zone for zone in _ZONES]
    return (
        any(_is_date(day, numbers, words) or _is_weekday(day, text, words) for day in days)
        or any(_is_near(int(minute), now.minute) for minute in re.findall(r"\b\d{1,2}:(\d\d)\b", text))
        or any(abs(stamp - now.timestamp()) < _DAY_SECONDS for stamp in _stamps(numbers))
    )


def _is_date(day: datetime, numbers: list[int], words: set[str]) -> bool:
    threes = [sorted(numbers[at : at + 3]) for at in range(len(numbers) - 2)]
    in_figures = any(sorted((year, day.month, day.day)) in threes for year in (day.year, day.year % 100))
    month = {f"{day:%B}".lower(), f"{day:%b}".lower()}
    return in_figures or int(f"{day:%Y%m%d}") in numbers or (day.day in numbers and bool(month & words))


def _is_weekday(day: datetime, text: str, words: set[str]) -> bool:
    chinese = _CHINESE_DAYS[day.weekday()]
    return bool({f"{day:%A}".lower(), f"{day:%a}".lower()} & words) or bool(re.search(f"(星期|礼拜|周){chinese}", text))


def _is_near(minute: int, now: int) -> bool:
    """Zones differ by whole quarters of an hour, nearly all by whole hours."""
    return min((minute - now) % 60, (now - minute) % 60) <= _MINUTES


def _stamps(numbers: list[int]) -> Iterator[float]:
    """Numbers as seconds since 1970, also those that count milliseconds."""
    for one in numbers:
        yield from (one, one / 1000)
