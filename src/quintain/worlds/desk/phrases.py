"""Every sentence the desk writes: questions, thoughts and declined answers, in English and Chinese."""

from __future__ import annotations

from quintain.worlds.drawing import Language

ATTRIBUTES: dict[str, dict[Language, str]] = {
    "capital": {"en": "capital", "zh": "首都"},
    "population": {"en": "population", "zh": "人口"},
    "area": {"en": "area in km2", "zh": "面积"},
    "subregion": {"en": "region", "zh": "地区"},
    "currency": {"en": "currency", "zh": "货币"},
    "language": {"en": "language", "zh": "语言"},
    "calling_code": {"en": "calling code", "zh": "区号"},
    "neighbours": {"en": "number of neighbours", "zh": "邻国数"},
    "city": {"en": "city", "zh": "城市"},
    "country": {"en": "country", "zh": "国家"},
    "elevation": {"en": "elevation in ft", "zh": "海拔"},
    "symbol": {"en": "symbol", "zh": "符号"},
    "number": {"en": "atomic number", "zh": "原子序数"},
    "mass": {"en": "atomic mass", "zh": "原子量"},
    "density": {"en": "density in g/cm3", "zh": "密度"},
}

_LOOKUP: dict[Language, tuple[str, ...]] = {
    "en": ("What is the {x} of {a}?", "Give the {x} of {a}.", "Tell me the {x} of {a}.", "Look up the {x} of {a}."),
    "zh": ("{a}的{x}{q}？", "请告诉我{a}的{x}。", "查一下{a}的{x}。", "在资料里，{a}的{x}{q}？"),
}
_TWO_HOP: dict[Language, tuple[str, ...]] = {
    "en": (
        "What is the {x} of the country where {a} lies?",
        "{a} lies in some country. What is its {x}?",
        "Give the {x} of the country of {a}.",
    ),
    "zh": ("{a}所在国家的{x}是什么？", "请告诉我{a}所在国家的{x}。"),
}
_COMPARE: dict[Language, tuple[str, ...]] = {
    "en": ("Which has the larger {x}: {a} or {b}?", "Of {a} and {b}, which has the larger {x}?"),
    "zh": ("{a}和{b}，哪个的{x}更大？", "哪个的{x}更大：{a}还是{b}？"),
}

QUESTIONS: dict[str, dict[Language, tuple[str, ...]]] = {
    "country_text": _LOOKUP,
    "country_number": _LOOKUP,
    "airport_fact": _LOOKUP,
    "element_fact": _LOOKUP,
    "missing_attribute": _LOOKUP,
    "missing_entity": _LOOKUP,
    "airport_code": {
        "en": (
            "What is the code of {a}?",
            "Give the three-letter code of {a}.",
            "Which code does {a} have?",
        ),
        "zh": ("{a}的机场代码是什么？", "请告诉我{a}的机场代码。"),
    },
    "running_total": {
        "en": (
            "Add up the {x} of these countries one after the other and give the total: {names}.",
            "What is the total {x} of {names}?",
        ),
        "zh": ("请依次把下列国家的{x}相加，给出总和：{names}。", "{names}的{x}总和是多少？"),
    },
    "airport_capital": _TWO_HOP,
    "airport_currency": _TWO_HOP,
    "compare_country": _COMPARE,
    "compare_elevation": _COMPARE,
    "compare_mass": _COMPARE,
    "total_country": {
        "en": ("What is the total {x} of {a} and {b}?", "Add the {x} of {a} and {b}."),
        "zh": ("{a}和{b}的{x}总和是多少？", "把{a}和{b}的{x}相加是多少？"),
    },
    "total_three": {
        "en": ("What is the total {x} of {a}, {b} and {c}?", "Add the {x} of {a}, {b} and {c}."),
        "zh": ("{a}、{b}和{c}的{x}总和是多少？", "把{a}、{b}和{c}的{x}相加是多少？"),
    },
    "elevation_difference": {
        "en": ("How many feet higher is {a} than {b}?", "By how many feet is {a} above {b}?"),
        "zh": ("{a}比{b}高多少英尺？", "{a}的海拔比{b}高多少英尺？"),
    },
    "people_per_km2": {
        "en": ("How many people per km2 live in {a}?", "What is the population per km2 of {a}?"),
        "zh": ("{a}每平方公里有多少人？", "{a}平均每平方公里有多少人口？"),
    },
    "elevation_metres": {
        "en": (
            "What is the elevation of {a} in metres? (1 ft = 0.3048 m)",
            "How many metres high is {a}? (1 ft = 0.3048 m)",
        ),
        "zh": ("{a}的海拔是多少米？（1英尺=0.3048米）", "{a}有多少米高？（1英尺=0.3048米）"),
    },
    "mass_ratio": {
        "en": (
            "How many times the atomic mass of {b} is that of {a}?",
            "Divide the atomic mass of {a} by that of {b}.",
        ),
        "zh": ("{a}的原子量是{b}的多少倍？", "{a}的原子量除以{b}的原子量是多少？"),
    },
}

THOUGHTS: dict[str, dict[Language, tuple[str, ...]]] = {
    "search": {
        "en": ("I search for it first.", "Let me look it up.", "First I find the document.", "I look for it."),
        "zh": ("先搜索。", "我先查一下。", "先找文档。"),
    },
    "search_all": {
        "en": ("I look for each of them.", "Let me search for all of them.", "I need more than one document."),
        "zh": ("分别搜索。", "都查一下。"),
    },
    "open": {
        "en": ("I open the document.", "Now I read it.", "It is there; I open it."),
        "zh": ("打开文档。", "读一下。"),
    },
    "open_all": {
        "en": ("I open each one.", "Now I read them.", "They are there; I open them."),
        "zh": ("分别打开。", "都打开看看。"),
    },
    "next": {
        "en": ("The country is {x}.", "Now I open {x}."),
        "zh": ("国家是{x}。", "打开{x}。"),
    },
    "calculate": {
        "en": ("Now I calculate.", "I have the numbers; calculate.", "Now the arithmetic."),
        "zh": ("计算一下。", "现在计算。"),
    },
    "answer": {
        "en": ("That is the answer.", "Found it.", "Now I can answer."),
        "zh": ("找到了。", "可以回答了。"),
    },
    "first": {"en": ("True, so the first one.", "True: the first is larger."), "zh": ("真，是前一个。",)},
    "second": {"en": ("False, so the second one.", "False: the second is larger."), "zh": ("假，是后一个。",)},
    "no_document": {
        "en": ("It is not in the results.", "There is no such document."),
        "zh": ("结果里没有它。", "没有这个文档。"),
    },
    "no_value": {
        "en": ("The document does not say it.", "It is not in the document."),
        "zh": ("文档里没有写。", "文档没有说明。"),
    },
}

NO_DOCUMENT: dict[Language, str] = {"en": "Cannot answer: no document on {a}.", "zh": "无法回答：没有关于{a}的文档。"}
NO_VALUE: dict[Language, str] = {
    "en": "Cannot answer: the document does not give the {x}.",
    "zh": "无法回答：文档没有给出{x}。",
}

UNKNOWN: dict[str, dict[Language, tuple[str, ...]]] = {
    "country": {
        "en": ("national anthem", "head of state", "life expectancy", "highest mountain", "literacy rate", "flag"),
        "zh": ("国歌", "国家元首", "平均寿命", "最高峰", "识字率", "国旗"),
    },
    "airport": {
        "en": ("number of runways", "year of opening", "number of passengers", "runway length", "operator", "owner"),
        "zh": ("跑道数", "启用年份", "旅客人数", "跑道长度", "运营者", "所有者"),
    },
    "element": {
        "en": ("boiling point", "discoverer", "melting point", "price", "colour", "year of discovery"),
        "zh": ("沸点", "发现者", "熔点", "价格", "颜色", "发现年份"),
    },
}
"""Attributes that no document gives, by kind; the first half is for training, the second for evaluation."""
