"""Every sentence of the shops: policies, what customers ask and say, what the reference agent says and thinks.

What customers say and how policies are worded differs between `train` and `eval`: no sentence is on both sides.
"""

from __future__ import annotations

from quintain.worlds.drawing import Language, Split

Worded = dict[Split, tuple[str, ...]]

POLICIES: dict[Language, dict[str, dict[Split, str]]] = {
    "en": {
        "refund": {
            "train": "An item may be refunded up to {window} days after delivery. Items of the category {final} are "
            "never refunded. If the item cost more than {limit} euros in all, escalate the order instead of refunding.",
            "eval": "Refunds: delivered at most {window} days ago. No refunds for {final}. Amounts above {limit} euros "
            "are a supervisor's decision, so the order is escalated and nothing is refunded.",
        },
        "cancel": {
            "train": "An order may be cancelled until it is shipped.",
            "eval": "Only orders that have not left the warehouse (status placed) can be cancelled.",
        },
        "address": {
            "train": "The address may be changed until the order is shipped.",
            "eval": "A new address is accepted while the status is placed, not later.",
        },
        "exchange": {
            "train": "An item may be exchanged up to {window} days after delivery for any product in stock.",
            "eval": "Exchanges: delivered at most {window} days ago, and the other product must be in stock.",
        },
        "credit": {
            "train": "If an order took more than {late} days from placing to delivery, its customer gets {credit} "
            "euros of credit on request.",
            "eval": "Late orders: more than {late} days between placing and delivery earn {credit} euros of credit "
            "when the customer asks.",
        },
    },
    "zh": {
        "refund": {
            "train": "商品可在送达后{window}天内退款。{final}类商品一律不退款。"
            "如果该商品总价超过{limit}欧元，不要退款，应升级该订单。",
            "eval": "退款：送达不超过{window}天。{final}类不予退款。"
            "金额高于{limit}欧元由主管决定，须升级订单，不得退款。",
        },
        "cancel": {"train": "订单在发货前可以取消。", "eval": "只有尚未出库（状态为placed）的订单才能取消。"},
        "address": {"train": "订单在发货前可以修改地址。", "eval": "状态为placed时才接受新地址，之后不行。"},
        "exchange": {
            "train": "商品可在送达后{window}天内换成任何有库存的商品。",
            "eval": "换货：送达不超过{window}天，而且新商品必须有库存。",
        },
        "credit": {
            "train": "如果订单从下单到送达超过{late}天，客户提出时可得{credit}欧元余额。",
            "eval": "延误订单：下单到送达多于{late}天，客户要求时补偿{credit}欧元余额。",
        },
    },
}

_REFUND: dict[Language, Worded] = {
    "en": {
        "train": ("I would like my money back for the {item}.", "Please refund the {item} I bought."),
        "eval": (
            "The {item} is not for me; can it be returned for a refund?",
            "I am sending back the {item}. Refund me.",
        ),
    },
    "zh": {
        "train": ("我想退掉{item}，请退款。", "请给我买的{item}退款。"),
        "eval": ("{item}不适合我，能退货退款吗？", "我要退回{item}，把钱退给我吧。"),
    },
}
_CANCEL: dict[Language, Worded] = {
    "en": {
        "train": ("Please cancel my order with the {item}.", "I do not need the {item} any more, cancel that order."),
        "eval": ("Stop the order that has the {item} in it.", "The order of the {item} was a mistake. Call it off."),
    },
    "zh": {
        "train": ("请取消我买{item}的订单。", "我不需要{item}了，取消那个订单。"),
        "eval": ("把含有{item}的订单停掉。", "买{item}是弄错了，请撤销那个订单。"),
    },
}
_ADDRESS: dict[Language, Worded] = {
    "en": {
        "train": (
            "My order with the {item} must go to another address.",
            "Please change the address of the order with the {item}.",
        ),
        "eval": (
            "I have moved; send the {item} to my new home.",
            "Deliver the order with the {item} somewhere else, please.",
        ),
    },
    "zh": {
        "train": ("我买{item}的订单要送到另一个地址。", "请修改{item}那个订单的地址。"),
        "eval": ("我搬家了，{item}请送到新住处。", "请把含有{item}的订单改送别处。"),
    },
}
_EXCHANGE: dict[Language, Worded] = {
    "en": {
        "train": ("I would like to exchange the {item} for the {product}.",),
        "eval": (
            "Could I swap the {item} for the {product}?",
            "Take back the {item} and send me the {product} instead.",
        ),
    },
    "zh": {
        "train": ("我想把{item}换成{product}。",),
        "eval": ("能用{item}换{product}吗？", "{item}退给你们，给我寄{product}。"),
    },
}

REQUESTS: dict[str, dict[Language, Worded]] = {
    "refund": _REFUND,
    "refund_late": _REFUND,
    "refund_large": _REFUND,
    "refund_final": _REFUND,
    "refund_stranger": _REFUND,
    "identity_fails": _REFUND,
    "cancel": _CANCEL,
    "cancel_shipped": _CANCEL,
    "address": _ADDRESS,
    "address_shipped": _ADDRESS,
    "exchange": _EXCHANGE,
    "exchange_sold_out": _EXCHANGE,
    "total": {
        "en": {
            "train": (
                "How many euros did the order with the {item} cost in all?",
                "What did I pay for the order with the {item}?",
            ),
            "eval": (
                "I need the sum of everything in the order with the {item}.",
                "What was the total of the order with the {item}?",
            ),
        },
        "zh": {
            "train": ("买{item}的订单一共多少欧元？", "{item}那个订单我总共付了多少？"),
            "eval": ("请告诉我含有{item}的订单的总额。", "含{item}的订单合计多少钱？"),
        },
    },
    "late_credit": {
        "en": {
            "train": ("The order with the {item} came late.",),
            "eval": (
                "The {item} took ages to arrive. What do I get for that?",
                "I waited far too long for the {item}; I want a credit.",
            ),
        },
        "zh": {
            "train": ("买{item}的订单来晚了。",),
            "eval": ("{item}等了太久才到，有补偿吗？", "{item}送得太慢了，我要求补偿余额。"),
        },
    },
}
"""First words of a customer; `{item}` names a product, `{product}` the one wanted instead."""

GIVEN: dict[Language, dict[str, dict[Split, str]]] = {
    "en": {
        "name": {"train": "My name is {name}.", "eval": "This is {name}."},
        "postcode": {"train": "My postcode is {postcode}.", "eval": "Postcode {postcode}."},
        "order": {"train": "It is order {order}.", "eval": "The order number is {order}."},
        "address": {"train": "The new address is {address}.", "eval": "It should go to {address}."},
    },
    "zh": {
        "name": {"train": "我叫{name}。", "eval": "我是{name}。"},
        "postcode": {"train": "我的邮编是{postcode}。", "eval": "邮编{postcode}。"},
        "order": {"train": "订单号是{order}。", "eval": "单号为{order}。"},
        "address": {"train": "新地址是{address}。", "eval": "请送到{address}。"},
    },
}
"""How a customer states a fact."""

SAYS: dict[Language, dict[str, dict[Split, str]]] = {
    "en": {
        "unknown_order": {"train": "I do not have the order number.", "eval": "No idea what the number is."},
        "reason": {"train": "I changed my mind.", "eval": "It is simply not what I need."},
        "yes": {"train": "Yes, please go ahead.", "eval": "Sure, do it."},
        "unsure": {"train": "I am not sure what you need from me.", "eval": "I do not know what to say to that."},
        "next": {"train": "One more thing. {request}", "eval": "And something else: {request}"},
    },
    "zh": {
        "unknown_order": {"train": "我没有订单号。", "eval": "我不知道单号。"},
        "reason": {"train": "我改主意了。", "eval": "就是不合适。"},
        "yes": {"train": "好的，请办理。", "eval": "可以，办吧。"},
        "unsure": {"train": "我不清楚您需要什么。", "eval": "这个我不知道怎么说。"},
        "next": {"train": "还有一件事。{request}", "eval": "另外：{request}"},
    },
}

QUESTIONS: dict[Language, dict[str, str]] = {
    "en": {
        "name": "your name",
        "postcode": "your postcode",
        "order": "the order number",
        "address": "the new address",
        "ask": "May I have {facts}?",
        "and": " and ",
    },
    "zh": {
        "name": "您的姓名",
        "postcode": "邮编",
        "order": "订单号",
        "address": "新地址",
        "ask": "请问{facts}是什么？",
        "and": "和",
    },
}
"""What the reference agent asks."""

CLOSINGS: dict[Language, dict[str, str]] = {
    "en": {
        "refund": "Done: the {item} is refunded.",
        "refund_late": "Cannot answer: the {item} was delivered too long ago for a refund.",
        "refund_large": "Done: order {order} is escalated, a supervisor decides on the refund.",
        "refund_final": "Cannot answer: items of this category are never refunded.",
        "refund_stranger": "Cannot answer: order {order} is not yours.",
        "identity_fails": "Cannot answer: the postcode does not match our records.",
        "cancel": "Done: order {order} is cancelled.",
        "cancel_shipped": "Cannot answer: order {order} is shipped already.",
        "address": "Done: order {order} goes to the new address.",
        "address_shipped": "Cannot answer: order {order} is shipped already.",
        "exchange": "Done: the {item} is exchanged for the {product}.",
        "exchange_sold_out": "Cannot answer: the {product} is sold out.",
        "total": "The order cost {value} euros.",
        "late_credit": "Done: the credit is on your account.",
    },
    "zh": {
        "refund": "完成：{item}已退款。",
        "refund_late": "无法回答：{item}送达太久，不能退款。",
        "refund_large": "完成：订单{order}已升级，退款由主管决定。",
        "refund_final": "无法回答：这类商品一律不退款。",
        "refund_stranger": "无法回答：订单{order}不是您的。",
        "identity_fails": "无法回答：邮编与记录不符。",
        "cancel": "完成：订单{order}已取消。",
        "cancel_shipped": "无法回答：订单{order}已经发货。",
        "address": "完成：订单{order}将送到新地址。",
        "address_shipped": "无法回答：订单{order}已经发货。",
        "exchange": "完成：{item}已换成{product}。",
        "exchange_sold_out": "无法回答：{product}没有库存。",
        "total": "该订单共{value}欧元。",
        "late_credit": "完成：余额已入账。",
    },
}

THOUGHTS: dict[Language, dict[str, str]] = {
    "en": {
        "ask": "I ask for what is missing.",
        "find_customer": "First I find the customer.",
        "check_identity": "Now the identity check.",
        "list_orders": "I look for the order.",
        "open_order": "I open the order.",
        "read_policy": "What does the policy say?",
        "find_product": "Is it in stock?",
        "close": "That settles it.",
        "act": "This is allowed; I do it.",
        "escalate_order": "Too much for me; I escalate.",
    },
    "zh": {
        "ask": "先问清楚缺少的信息。",
        "find_customer": "先找到客户。",
        "check_identity": "核对身份。",
        "list_orders": "查找订单。",
        "open_order": "打开订单。",
        "read_policy": "看看政策怎么规定。",
        "find_product": "有没有库存？",
        "close": "可以答复了。",
        "act": "允许，办理。",
        "escalate_order": "金额太大，升级处理。",
    },
}
