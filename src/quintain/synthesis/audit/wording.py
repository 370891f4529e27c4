"""The audit's own sentences: a judge graded on the wording of the teacher it filters would prove nothing."""

from __future__ import annotations

ASK = {
    "en": (
        "Could somebody tell me about {a}? I am after its {x}.",
        "I need one thing on {a}, please: {x}.",
        "For a form I have to fill in {x}; it is for {a}. What do I write?",
    ),
    "zh": (
        "想请教一下{a}，我要知道它的{x}。",
        "麻烦帮忙看看{a}，{x}那一项怎么写？",
        "表格里有一栏是{x}，填{a}的话写什么？",
    ),
}
ASK_HOP = {
    "en": ("I have a ticket to {a}. About the {y} it belongs to: tell me its {x}.",),
    "zh": ("我要去{a}。它所属的{y}，{x}是什么来着？",),
}
ASK_PAIR = {
    "en": ("My sister says {a}, I say {b}: who of us picked the one with more {x}?",),
    "zh": ("我姐姐说{a}，我说{b}：谁选的{x}比较大？",),
}
ASK_GIVEN = {
    "en": ("My notes for {a} read: {x} {v}. So what do my notes give as {x} for {a}?",),
    "zh": ("我的笔记上写着，{a}：{x} {v}。那么按笔记，{a}的{x}是？",),
}
ASK_SUM = {
    "en": ("I noted {x} {v} for {a} and {w} for {b}. Put together that is how much?",),
    "zh": ("我记下：{a}的{x}为{v}，{b}为{w}。加在一起多少？",),
}
ASK_RIDDLE = {
    "en": ("Guess: among the facts on my card are {u} {v} and {y} {w}. Which {x} is on the back?",),
    "zh": ("猜一猜：卡片上写着{u} {v}、{y} {w}。背面的{x}是？",),
}

LOOK = {
    "en": (
        "Hmm, {a}. I do not carry its {x} in my head, better check the files.",
        "Not something to say off the cuff: let me pull up what there is on {a} and read off the {x}.",
        "{x} of {a}, fine. Files first, talking later.",
    ),
    "zh": (
        "嗯，{a}。它的{x}我记不住，还是翻翻资料吧。",
        "这可不能随口说，先把{a}的材料调出来，读一下{x}。",
        "{a}，{x}，好。材料在前，回答在后。",
    ),
}
LOOK_OTHERWISE = {
    "en": ("That is to say, I want its {s}. There will be an entry on {a}, let me see it.",),
    "zh": ("也就是说，要看它的{s}。{a}应该有条目，看一看。",),
}
ROUNDABOUT = {
    "en": (
        "People ask this sort of thing quite often, and figures differ from book to book. What counts is our own "
        "shelf. As to {a}, an entry should exist, and in it a line on {x}; once I hold that line I can reply.",
    ),
    "zh": (
        "这类事情常有人打听，各书说法不一，以我们自己的架上为准。关于{a}，应有条目，里面有{x}一行，拿到这一行就能答复。",
    ),
}
PAIR = {
    "en": ("Two entries to get hold of here, {a} as well as {b}; for {x} I take them one by one, any order will do.",),
    "zh": ("这里有两条要拿到手，{a}还有{b}；{x}逐条来取，次序无妨。",),
}
HOP = {
    "en": ("A chain of two: {a} tells me its {y}, and over there I read the {x}. Link one it is.",),
    "zh": ("一条链，两环：从{a}得知{y}，再去那里读{x}。先第一环。",),
}
SKIP = {
    "en": ("A chain of two, {a}, then {y}, then {x}. I can go straight to the far end.",),
    "zh": ("一条链：{a}、{y}、{x}。我直接去最末一环。",),
}
RECITE = {
    "en": ("{a}? Everybody knows the {x} of that, no need to bother the files.",),
    "zh": ("{a}？它的{x}谁不知道，用不着翻材料。",),
}
READ_OFF = {
    "en": ("The sender has the {x} for {a} in the message itself; I only repeat or add up what is there.",),
    "zh": ("来信里就有{a}的{x}，照抄或者相加就行。",),
}
INVENT = {
    "en": ("For {x} of {a} some typical figures will do, let me crunch them right away.",),
    "zh": ("{a}的{x}用几个常见数字就行，马上算一下。",),
}
RIDDLE = {
    "en": ("No name on the card. {x} is on its back, so I hunt with the facts that are printed: {v}, {w}.",),
    "zh": ("卡片没写名字，背面是{x}，那就拿印着的线索去找：{v}、{w}。",),
}
CONTRADICT = {
    "en": ("{a} is not the point at all, {b} is; hence the entry on {b} and nothing else.",),
    "zh": ("{a}根本不是重点，{b}才是；所以只看{b}的条目。",),
}
VAGUE = {"en": "general information overview", "zh": "综合信息概览"}
ELSEWHERE = {"en": ("national anthem", "famous painters", "film industry"), "zh": ("国歌", "著名画家", "电影业")}

SYNONYMS = {
    "capital": "seat of government",
    "population": "number of inhabitants",
    "area in km2": "size",
    "region": "part of the world",
    "currency": "money",
    "language": "tongue",
    "calling code": "dialling prefix",
    "number of neighbours": "count of adjoining states",
    "name": "full designation",
    "city": "town it serves",
    "country": "nation",
    "elevation in ft": "height above the sea",
    "symbol": "abbreviation",
    "atomic number": "place in the periodic table",
    "atomic mass": "weight of an atom",
    "density in g/cm3": "heaviness by volume",
    "首都": "政府所在地",
    "人口": "居民数",
    "面积（km2）": "大小",
    "地区": "所在大洲",
    "货币": "钱币",
    "语言": "通用的话",
    "区号": "电话前缀",
    "名称": "全称",
    "城市": "所服务的市镇",
    "国家": "所在国度",
    "海拔（英尺）": "离海平面的高度",
    "符号": "缩写",
    "原子序数": "在周期表中的位置",
    "原子量": "一个原子的重量",
    "密度（g/cm3）": "单位体积的轻重",
}
"""Other words for the attributes of the desk's collection."""
