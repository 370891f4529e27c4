"""Numbers with their units: what can be added, subtracted and compared."""

from __future__ import annotations

import re
from decimal import Decimal

from quintain.synthesis.matching import NUMBER, numbers

_UNITS = """
mm cm m km in ft yd mi metre metres meter meters kilometre kilometres kilometer kilometers
inch inches foot feet mile miles
mm2 cm2 m2 km2 m² km² ha hectare hectares acre acres m3 m³ cm3 cm³ ml cl dl l litre litres liter liters gallon gallons
mg g kg t lb lbs oz gram grams kilogram kilograms kilo kilos ton tons tonne tonnes pound pounds ounce ounces
s ms min h sec second seconds minute minutes hour hours day days week weeks month months year years
euro euros cent cents dollar dollars franc francs yen yuan eur usd gbp chf jpy cny €
percent km/h m/s mph °c °f degree degrees w kw mw gw kwh mwh v hz khz mhz ghz kb mb gb tb px
thousand million billion people persons members visitors pages rooms seats pieces points
毫米 厘米 分米 米 公里 千米 平方米 平方公里 公顷 亩 毫升 升 立方米 毫克 克 千克 公斤 吨 斤 秒 分钟 小时 天 周 个月 岁
分 角 元 欧元 美元 英镑 日元 港元 万 亿 万元 亿元 人 名 个 位 件 张 艘 辆 台 本 页 间 层 次 座 度 摄氏度
瓦 千瓦 兆瓦 千瓦时
"""
UNITS = frozenset(_UNITS.split())
"""Units as they stand behind a number, in lower case; a unit that is not here is no reason to add two numbers."""

_SPELLED = "|".join(map(re.escape, sorted(UNITS, key=len, reverse=True)))
QUANTITY = rf"(?<![a-zA-Z\d.,/:-])[€$£¥]?{NUMBER}(?:\s?(?:%|(?:{_SPELLED})(?![a-zA-Z²³/])))?(?![.,/:-]?\d)(?![a-zA-Z])"
"""Pattern of a number in running text, with its unit if there is one."""


def quantity(text: str) -> tuple[Decimal, str] | None:
    """The number of a text that is a number and perhaps its unit; None for anything else.

    >>> quantity("2,184 euros"), quantity("23kg"), quantity("€5"), quantity("800")
    ((Decimal('2184'), 'euros'), (Decimal('23'), 'kg'), (Decimal('5'), '€'), (Decimal('800'), ''))
    >>> quantity("26 July 2026"), quantity("A9"), quantity("6 June")
    (None, None, None)
    """
    found = numbers(text)
    if len(found) != 1:
        return None
    before, after = (one.strip() for one in re.split(NUMBER, text, maxsplit=1))
    unit = (before + after).lower()
    plain = not any(char.isalpha() for char in unit)
    return (found[0], unit) if plain or (not before and after.lower() in UNITS) else None


def same_unit(one: str, other: str) -> bool:
    """Whether both texts are quantities of one unit, in the singular or in the plural."""
    units = [None if (found := quantity(text)) is None else _singular(found[1]) for text in (one, other)]
    return units[0] is not None and units[0] == units[1]


def with_number(text: str, number: str) -> str:
    """A quantity with another number.

    >>> with_number("2,184 euros", "3000"), with_number("€5", "7")
    ('3000 euros', '€7')
    """
    return re.sub(NUMBER, number, text, count=1)


def _singular(unit: str) -> str:
    return unit.removesuffix("s") if len(unit) > 3 else unit
