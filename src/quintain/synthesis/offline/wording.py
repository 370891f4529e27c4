"""Every sentence of the offline teacher, in English and Chinese.

Varied on purpose: no opening of four words may cover more than 5 % of the samples, and right and wrong plans are worded
alike, so that a model can learn nothing from the wording. Placeholders: `{x}` what is asked, `{a}` of what, `{y}` what
leads there, `{v}`, `{w}`, `{r}` values, `{tool}` the tool.
"""

from __future__ import annotations

from collections.abc import Sequence

OPENINGS: dict[str, tuple[str, ...]] = {
    "en": (
        "The question turns on the {x} of {a}.",
        "What has to be found is the {x} of {a}.",
        "Asked is the {x} of {a}.",
        "To answer, the {x} of {a} is needed.",
        "This comes down to the {x} of {a}.",
        "Everything here depends on the {x} of {a}.",
        "Here one needs the {x} of {a}.",
        "The missing piece is the {x} of {a}.",
        "It is about the {x} of {a}.",
        "{a}: the {x} is the thing asked.",
        "Somebody wants the {x} of {a}.",
        "My task is the {x} of {a}.",
        "First, what is asked: the {x} of {a}.",
        "I am asked for the {x} of {a}.",
        "We are after the {x} of {a}.",
        "The {x} of {a} is what counts.",
        "Only the {x} of {a} settles this.",
        "For the answer I need the {x} of {a}.",
        "A fact is wanted: the {x} of {a}.",
        "Let me restate it: the {x} of {a} is asked.",
        "Wanted: the {x} of {a}.",
        "In short, the {x} of {a} is sought.",
        "So the {x} of {a} decides it.",
        "Nothing but the {x} of {a} will do.",
        "Reading it again, the {x} of {a} is asked.",
        "Before anything else: the {x} of {a} is open.",
        "One thing matters, the {x} of {a}.",
        "Behind the question stands the {x} of {a}.",
        "About {a} one thing is asked, the {x}.",
        "Clearly the {x} of {a} is meant.",
        "{a} is named, and its {x} is wanted.",
        "As asked, {a} and its {x} matter.",
        "Looking at the words, it is the {x} of {a}.",
        "What does it take? The {x} of {a}.",
        "Put plainly: the {x} of {a}.",
        "With {a} in mind, the {x} is needed.",
    ),
    "zh": (
        "问题问的是{a}的{x}。",
        "要回答，需要{a}的{x}。",
        "这里缺的是{a}的{x}。",
        "先看清楚：问{a}的{x}。",
        "关键在于{a}的{x}。",
        "所求为{a}的{x}。",
        "{a}的{x}是要找的内容。",
        "想知道的是{a}的{x}。",
        "归根到底要{a}的{x}。",
        "题目要求给出{a}的{x}。",
        "用户想要{a}的{x}。",
        "我需要查明{a}的{x}。",
        "答案取决于{a}的{x}。",
        "目前要看{a}的{x}。",
        "核心是{a}的{x}。",
        "必须弄清{a}的{x}。",
        "这道题看{a}的{x}。",
        "任务是给出{a}的{x}。",
        "换句话说，求{a}的{x}。",
        "要紧的是{a}的{x}。",
        "应当先有{a}的{x}。",
        "重点是{a}的{x}。",
        "简单地说，要{a}的{x}。",
        "没有{a}的{x}就答不了。",
        "围绕{a}，要知道{x}。",
        "问法很直接：{a}的{x}。",
        "首先明确，要{a}的{x}。",
        "回到问题，它问{a}的{x}。",
        "说到底就是{a}的{x}。",
        "眼下要的是{a}的{x}。",
        "{a}一项，问{x}。",
        "{a}，问的是{x}。",
        "{x}是要点，对象为{a}。",
        "{x}，指{a}的。",
        "就{a}来说，求{x}。",
        "把问题拆开看：{a}，{x}。",
        "此处求{a}的{x}。",
        "提问者关心{a}的{x}。",
        "需要给出的是{a}的{x}。",
        "别的不论，只看{a}的{x}。",
        "已经清楚要问{a}的{x}。",
        "一句话，问{a}的{x}。",
    ),
}

NEEDS: dict[str, tuple[str, ...]] = {
    "en": (
        "The question does not say it, so it has to be looked up.",
        "That can't be known without looking.",
        "It is not given, a source must tell it.",
        "I should not guess; it must be read somewhere.",
        "A document has to tell.",
        "Memory won't do here, a source will.",
    ),
    "zh": (
        "题目没有给出，所以要查。",
        "不查就无法知道。",
        "这里没有给出，要靠资料。",
        "不能猜，要看资料。",
        "得由文档来说明。",
        "不能凭记忆，要有出处。",
    ),
}

GIVEN: dict[str, tuple[str, ...]] = {
    "en": (
        "The question gives all that is needed.",
        "Every value stands in the question already.",
        "Nothing has to be looked up for that.",
        "What it takes is given.",
        "The values are at hand.",
        "No source is needed here.",
    ),
    "zh": (
        "题目已经给出所需的一切。",
        "数值都在题目里。",
        "这不用查资料。",
        "条件都有了。",
        "所需的数值就在手边。",
        "这里不需要资料。",
    ),
}

STEPS: dict[str, dict[str, tuple[str, ...]]] = {
    "hop": {
        "en": (
            "First I find the {y} of {a}, then I read on there.",
            "It takes two steps: the {y} of {a}, and what is said about that.",
            "{a} leads to its {y}, and that to the answer.",
            "The {y} of {a} comes first, the rest after it.",
        ),
        "zh": (
            "先找{a}的{y}，再接着看。",
            "分两步：先是{a}的{y}，再看它的资料。",
            "由{a}找到{y}，再由它得到答案。",
            "{a}的{y}在先，其余在后。",
        ),
    },
    "several": {
        "en": (
            "Both are read one after the other, then put together.",
            "One value each, then they are set side by side.",
            "I take them in turn and then compare or calculate.",
            "First the one, then the other, then the result.",
        ),
        "zh": (
            "两个依次查看，再放在一起。",
            "各取一个数，再作比较或计算。",
            "逐个来，然后得出结果。",
            "先一个，再另一个，最后得结果。",
        ),
    },
    "riddle": {
        "en": (
            "The clues must first lead to a name.",
            "What is described has to be identified first.",
            "I go from the clues to the thing itself.",
            "A clue that fits one thing only is the way in.",
        ),
        "zh": ("先由线索找到名称。", "要先弄清描述的是什么。", "从线索出发找到它本身。", "从独有的线索入手。"),
    },
}

CALLS: dict[str, tuple[str, ...]] = {
    "en": (
        "I begin with {tool}.",
        "The first step is {tool}.",
        "So {tool} comes first.",
        "Next: {tool}.",
        "{tool} is the tool for that.",
        "I use {tool} now.",
    ),
    "zh": (
        "先用{tool}。",
        "第一步是{tool}。",
        "所以先用{tool}。",
        "接下来用{tool}。",
        "适合的工具是{tool}。",
        "现在用{tool}。",
    ),
}

DESCRIBED = {"en": "what is described", "zh": "所描述的对象"}
"""Stands for the subject of a riddle."""


def joined(parts: Sequence[str], language: str) -> str:
    """Parts as a list in a sentence: `a, b and c`."""
    last, comma = {"en": (" and ", ", "), "zh": ("和", "、")}[language]
    return last.join([comma.join(parts[:-1]), parts[-1]]) if len(parts) > 1 else "".join(parts)


QUESTIONS: dict[str, dict[str, tuple[str, ...]]] = {
    "lookup": {
        "en": (
            "What is the {x} of {a}?",
            "Can you tell me the {x} of {a}?",
            "Which value do the sources give for the {x} of {a}?",
            "{a}: what is its {x}?",
            "How is the {x} of {a} recorded?",
        ),
        "zh": (
            "{a}的{x}是什么？",
            "能告诉我{a}的{x}吗？",
            "资料里{a}的{x}是什么？",
            "关于{a}，{x}是什么？",
            "请给出{a}的{x}。",
        ),
    },
    "hop": {
        "en": (
            "What is the {x} of the {y} of {a}?",
            "Take the {y} of {a}: what is its {x}?",
            "{a} has a {y}. Which {x} does that have?",
        ),
        "zh": ("{a}的{y}的{x}是什么？", "先看{a}的{y}，它的{x}是什么？", "{a}有一个{y}，其{x}是什么？"),
    },
    "compare": {
        "en": ("Which has the larger {x}, {a} or {b}?", "Compare {a} with {b}: whose {x} is larger?"),
        "zh": ("{a}和{b}，谁的{x}更大？", "比较{a}与{b}：哪个的{x}更大？"),
    },
    "total": {
        "en": ("What do the {x} of {a} and that of {b} add up to?", "Add the {x} of {a} to that of {b}."),
        "zh": ("{a}与{b}的{x}合计是多少？", "把{a}的{x}与{b}的相加，得多少？"),
    },
    "difference": {
        "en": ("By how much does the {x} of {a} exceed that of {b}?", "How far apart are {a} and {b} in {x}?"),
        "zh": ("{a}的{x}比{b}多多少？", "{a}与{b}的{x}相差多少？"),
    },
    "given_lookup": {
        "en": ("A note says: {f} According to it, what is the {x} of {a}?", "{f} Given that, what is the {x} of {a}?"),
        "zh": ("有一条记录：{f}据此，{a}的{x}是什么？", "{f}由此看，{a}的{x}是什么？"),
    },
    "given_total": {
        "en": (
            "The {x} of {a} is {v} and that of {b} is {w}. What is their sum?",
            "If the {x} is {v} for {a} and {w} for {b}, what do they add up to?",
        ),
        "zh": ("{a}的{x}是{v}，{b}的是{w}。合计是多少？", "已知{x}：{a}为{v}，{b}为{w}，两者之和是多少？"),
    },
    "given_compare": {
        "en": (
            "The {x} of {a} is {v}, that of {b} is {w}. Which of the two is larger?",
            "With {v} for {a} and {w} for {b}, whose {x} is larger?",
        ),
        "zh": ("{a}的{x}是{v}，{b}的是{w}。哪个更大？", "已知{x}：{a}为{v}，{b}为{w}，谁的更大？"),
    },
    "riddle": {
        "en": (
            "Its {c1}, and its {c2}. What is its {x}?",
            "I think of something: its {c1}; its {c2}. Which {x} does it have?",
            "Something is described so: its {c1}, its {c2}. Give its {x}.",
        ),
        "zh": (
            "它的{c1}，它的{c2}。它的{x}是什么？",
            "我想到一样东西：{c1}，{c2}。它的{x}是什么？",
            "有这样一个对象，{c1}，{c2}。请给出它的{x}。",
        ),
    },
    "report": {
        "en": ("Give a short report on {a}: its {x}.", "Sum up what is known of {a}, namely its {x}."),
        "zh": ("请简要介绍{a}的{x}。", "概述{a}：它的{x}。"),
    },
}
"""Questions, by form. The larger number comes first in a difference."""

CLUE = {"en": "{x} is {v}", "zh": "{x}是{v}"}

FACTS: dict[str, tuple[str, ...]] = {
    "en": (
        "The {x} of {a} is {v}.",
        "For {a} the {x} is {v}.",
        "{a} has {v} as its {x}.",
        "As to {a}, its {x} is {v}.",
    ),
    "zh": ("{a}的{x}是{v}。", "就{a}而言，{x}是{v}。", "{a}这边，{x}为{v}。", "{x}方面，{a}是{v}。"),
}

CONCLUSIONS: dict[str, tuple[str, ...]] = {
    "en": ("So the answer is {v}.", "That gives {v}.", "Hence {v}.", "Therefore it is {v}.", "Which makes {v}."),
    "zh": ("所以答案是{v}。", "由此得{v}。", "因此是{v}。", "结果是{v}。", "这就得到{v}。"),
}

IDENTIFIED: dict[str, tuple[str, ...]] = {
    "en": ("The clues fit {a}.", "That can only be {a}.", "What is described is {a}."),
    "zh": ("线索符合{a}。", "那只能是{a}。", "所描述的是{a}。"),
}

ARITHMETIC: dict[str, dict[str, tuple[str, ...]]] = {
    "total": {
        "en": ("{v} + {w} = {r}.", "Added, {v} and {w} make {r}."),
        "zh": ("{v} + {w} = {r}。", "{v}加{w}得{r}。"),
    },
    "difference": {
        "en": ("{v} - {w} = {r}.", "{v} less {w} leaves {r}."),
        "zh": ("{v} - {w} = {r}。", "{v}减{w}得{r}。"),
    },
    "compare": {
        "en": ("{v} is more than {w}.", "Of {v} and {w} the first is larger."),
        "zh": ("{v}大于{w}。", "{v}比{w}大。"),
    },
}

UNSURE: dict[str, tuple[str, ...]] = {
    "en": ("I do not know it for sure.", "I am not certain.", "I would have to check.", "Only a guess is possible."),
    "zh": ("我不能确定。", "没有把握。", "还需核对。", "只能猜测。"),
}
