"""Every sentence of the word problems, in English and Chinese: two wordings for training, the last for evaluation."""

from __future__ import annotations

from quintain.worlds.drawing import Language, Split

PEOPLE: dict[Split, dict[Language, tuple[str, ...]]] = {
    "train": {
        "en": ("Anna", "Ben", "Clara", "David", "Emma", "Frank", "Grace", "Henry"),
        "zh": ("小明", "小红", "小刚", "小丽", "小文", "小杰"),
    },
    "eval": {
        "en": ("Olga", "Peter", "Ruth", "Simon", "Tara", "Victor", "Wendy", "Yusuf"),
        "zh": ("小华", "小强", "小芳", "小军", "小梅", "小龙"),
    },
}

GOODS: dict[Split, dict[Language, tuple[str, ...]]] = {
    "train": {
        "en": ("cups", "lamps", "books", "chairs", "bags", "tickets"),
        "zh": ("杯子", "书包", "苹果", "本子", "面包", "台灯"),
    },
    "eval": {
        "en": ("plates", "clocks", "maps", "tables", "kites", "hats"),
        "zh": ("盘子", "足球", "橘子", "闹钟", "风筝", "帽子"),
    },
}

QUESTIONS: dict[str, dict[Language, tuple[str, str, str]]] = {
    "shopping": {
        "en": (
            "{a} buys {list}. How many euros is that in total?",
            "What do {list} cost together, in euros?",
            "{a} pays for {list}. What is the bill, in euros?",
        ),
        "zh": ("{a}买了{list}，一共多少元？", "{list}，总共要多少元？", "{a}购买{list}，应付多少元？"),
    },
    "change": {
        "en": (
            "{a} buys {n} {x} at {p} euros each and pays with {b} euros. How many euros does {a} get back?",
            "One of the {x} costs {p} euros. {a} takes {n} of them and has {b} euros. How many euros are left?",
            "From {b} euros, {a} pays for {n} {x} that cost {p} euros each. How many euros remain?",
        ),
        "zh": (
            "{a}买了{n}个{x}，每个{p}元，付了{b}元，应找回多少元？",
            "每个{x}{p}元，{a}带了{b}元，买了{n}个，还剩多少元？",
            "{a}用{b}元去买单价{p}元的{x}，共买{n}个，余下多少元？",
        ),
    },
    "discount": {
        "en": (
            "{x} cost {p} euros each. In the sale they are {d} % cheaper. What do {n} of them cost in the sale?",
            "The price of {x}, {p} euros each, falls by {d} %. How many euros are {n} of them now?",
            "With {d} % off the price of {p} euros each, how many euros does {a} pay for {n} {x}?",
        ),
        "zh": (
            "{x}每个{p}元，降价{d}%后，买{n}个要多少元？",
            "单价{p}元的{x}便宜了{d}%，{n}个现在多少元？",
            "{x}原价每个{p}元，现在减价{d}%，{a}买{n}个应付多少元？",
        ),
    },
    "travel": {
        "en": (
            "A train goes {v} km/h for {h} hours and then {w} km/h for {k} hours. How many km does it go?",
            "{a} drives {h} hours at {v} km/h and {k} hours at {w} km/h. How many km is that?",
            "How many km is a journey of {h} hours at {v} km/h followed by {k} hours at {w} km/h?",
        ),
        "zh": (
            "火车先以每小时{v}千米行驶{h}小时，再以每小时{w}千米行驶{k}小时，一共行驶多少千米？",
            "{a}开车{h}小时，时速{v}千米，又开{k}小时，时速{w}千米，共多少千米？",
            "前{h}小时的速度是每小时{v}千米，后{k}小时是每小时{w}千米，全程多少千米？",
        ),
    },
    "average": {
        "en": (
            "What is the average of {list}?",
            "{a} counted {list} birds on {n} days. What is the average per day?",
            "On {n} days {a} sold {list} tickets. How many were sold per day on average?",
        ),
        "zh": (
            "{list}的平均数是多少？",
            "{a}在{n}天里分别数到{list}只鸟，平均每天多少只？",
            "{n}天里分别卖出{list}张票，平均每天卖出多少张？",
        ),
    },
    "stamps": {
        "en": (
            "{a} has {k} times as many stamps as {b}. Together they have {s}. How many stamps does {a} have?",
            "{a} and {b} have {s} stamps, {a} {k} times as many as {b}. How many does {a} have?",
            "Of {s} stamps, {a} owns {k} times as many as {b}, who owns the rest. How many does {a} own?",
        ),
        "zh": (
            "{a}的邮票数是{b}的{k}倍，两人共有{s}张，{a}有多少张？",
            "{a}和{b}共有{s}张邮票，{a}是{b}的{k}倍，{a}有多少张？",
            "{s}张邮票分给{a}和{b}，{a}得到的是{b}的{k}倍，{a}得到多少张？",
        ),
    },
    "heads_and_legs": {
        "en": (
            "On a farm chickens and rabbits have {h} heads and {l} legs. How many rabbits are there?",
            "There are {h} chickens and rabbits with {l} legs in all. How many of them are rabbits?",
            "A yard holds {h} animals, chickens and rabbits, with {l} legs. How many rabbits does it hold?",
        ),
        "zh": (
            "鸡和兔共有{h}个头，{l}条腿，兔有多少只？",
            "笼子里有鸡和兔{h}只，一共{l}条腿，有多少只兔？",
            "院子里鸡兔共{h}只，腿共{l}条，其中兔多少只？",
        ),
    },
    "rectangle": {
        "en": (
            "A rectangle is {d} m longer than wide and has a perimeter of {p} m. What is its area in m2?",
            "The perimeter of a garden is {p} m, its length {d} m more than its width. How many m2 is it?",
            "How many m2 has a rectangular field with a perimeter of {p} m whose length exceeds its width by {d} m?",
        ),
        "zh": (
            "长方形的长比宽多{d}米，周长{p}米，面积是多少平方米？",
            "菜园周长{p}米，长比宽多{d}米，它的面积是多少平方米？",
            "一块长方形地周长为{p}米，宽比长少{d}米，面积多少平方米？",
        ),
    },
    "interest": {
        "en": (
            "{a} saves {p} euros at {r} % interest a year, added every year. How many euros are there after {n} years?",
            "{p} euros grow by {r} % a year. How many euros are they after {n} years?",
            "What does a deposit of {p} euros amount to in {n} years at {r} % compound interest a year, in euros?",
        ),
        "zh": (
            "{a}存入{p}元，年利率{r}%，每年复利一次，{n}年后有多少元？",
            "{p}元每年增长{r}%，{n}年后是多少元？",
            "本金{p}元，年复利{r}%，存{n}年后本利和是多少元？",
        ),
    },
    "consecutive": {
        "en": (
            "{n} consecutive whole numbers add up to {s}. What is the largest of them?",
            "The sum of {n} whole numbers in a row is {s}. Which is the largest?",
            "{s} is the sum of {n} consecutive whole numbers. Give the greatest one.",
        ),
        "zh": (
            "{n}个连续整数的和是{s}，其中最大的是多少？",
            "连续的{n}个整数加起来是{s}，最大的一个是多少？",
            "{s}是{n}个连续整数之和，求最大的那个数。",
        ),
    },
    "meeting": {
        "en": (
            "Two cyclists {d} km apart ride towards each other at {v} and {w} km/h. After how many hours do they meet?",
            "{a} and {b} are {d} km apart and drive towards each other, at {v} km/h and {w} km/h. "
            "How many hours until they meet?",
            "How many hours do two trains need to meet if they are {d} km apart and approach at {v} and {w} km/h?",
        ),
        "zh": (
            "两人相距{d}千米，分别以每小时{v}千米和{w}千米相向而行，几小时后相遇？",
            "{a}和{b}相距{d}千米，同时相向出发，时速分别为{v}千米和{w}千米，多少小时后相遇？",
            "甲乙两车相距{d}千米，相对开来，每小时分别行{v}千米和{w}千米，经过多少小时相遇？",
        ),
    },
    "number_riddle": {
        "en": (
            "{a} thinks of a number, multiplies it by {k} and adds {b}. The result is {c}. What is the number?",
            "{k} times a number plus {b} is {c}. What is the number?",
            "Adding {b} to {k} times a number gives {c}. Which number is it?",
        ),
        "zh": (
            "{a}想了一个数，乘以{k}再加{b}，得{c}，这个数是多少？",
            "一个数的{k}倍加上{b}等于{c}，求这个数。",
            "某数扩大到{k}倍后再增加{b}，结果是{c}，某数是多少？",
        ),
    },
    "tank": {
        "en": (
            "A pipe brings {v} litres a minute into a tank of {t} litres, a leak takes {w} litres a minute. "
            "After how many minutes is the empty tank full?",
        )
        * 3,
        "zh": ("水箱容量{t}升，每分钟进水{v}升，同时漏水{w}升，空水箱多少分钟能装满？",) * 3,
    },
    "coins": {
        "en": ("{a} has {n} coins, of 2 and of 5 cents, worth {s} cents. How many coins are of 5 cents?",) * 3,
        "zh": ("{a}有{n}枚硬币，面值为2分和5分，共{s}分，5分的有多少枚？",) * 3,
    },
    "field": {
        "en": ("A field of {s} m2 is {d} m longer than wide. How many metres is its perimeter?",) * 3,
        "zh": ("一块长方形地面积{s}平方米，长比宽多{d}米，周长是多少米？",) * 3,
    },
    "ratio": {
        "en": ("{s} euros are shared in the ratio {k} : {m} : {n}. How many euros is the largest share?",) * 3,
        "zh": ("把{s}元按{k}:{m}:{n}分配，最多的一份是多少元？",) * 3,
    },
}

ITEM: dict[Language, str] = {"en": "{n} {x} at {p} euros each", "zh": "{n}个单价{p}元的{x}"}
JOIN: dict[Language, tuple[str, str]] = {"en": (", ", " and "), "zh": ("、", "和")}

THOUGHTS: dict[str, dict[Language, str]] = {
    "calculate": {"en": "I calculate.", "zh": "计算一下。"},
    "solve": {"en": "I solve the equation.", "zh": "解方程。"},
    "algebra": {"en": "This is algebra.", "zh": "用代数工具。"},
    "answer": {"en": "That is the answer.", "zh": "得到答案。"},
}
