"""What the shops are made of: people, streets, goods. Nothing of `eval` occurs in `train`."""

from __future__ import annotations

from dataclasses import dataclass

from quintain.worlds.drawing import Language, Split


@dataclass(frozen=True, slots=True)
class Names:
    """One side of the split in one language; goods by category, each sold in every colour."""

    first: tuple[str, ...]
    last: tuple[str, ...]
    streets: tuple[str, ...]
    colours: tuple[str, ...]
    goods: dict[str, tuple[str, ...]]


def _split(text: str) -> tuple[str, ...]:
    return tuple(text.split())


NAMES: dict[tuple[Split, Language], Names] = {
    ("train", "en"): Names(
        _split("Ada Ben Clara David Emma Felix Grace Henry Iris Jonas Kate Leo Maria Noah Olga Paul"),
        _split("Adler Baker Costa Dvorak Ekberg Fischer Garcia Hansen Ivanov Jansen Kumar Lind Moreau Nowak"),
        ("Mill Lane", "Harbour Street", "Church Road", "Oak Avenue", "Station Road", "River Walk"),
        ("red", "blue", "green", "white"),
        {
            "kitchen": ("kettle", "toaster", "frying pan", "teapot"),
            "garden": ("watering can", "rake", "flower box", "hammock"),
            "office": ("desk lamp", "stapler", "notebook", "paper tray"),
        },
    ),
    ("eval", "en"): Names(
        _split("Anders Bianca Cyrus Daria Elio Freya Gideon Hanna Ismail Judith Kofi Lena Milan Nadia Oskar"),
        _split("Okafor Petrov Quinn Rossi Silva Tanaka Ueda Varga Weber Xu Yilmaz Zhang Abara Bergman Cohen"),
        ("Castle Hill", "Market Square", "Lighthouse Way", "Garden Close", "Bridge Street", "Windmill Row"),
        ("black", "yellow", "silver", "striped", "brown"),
        {
            "sports": ("tennis racket", "yoga mat", "helmet", "climbing rope"),
            "travel": ("suitcase", "backpack", "neck pillow", "tent"),
            "music": ("ukulele", "metronome", "music stand", "drum pad"),
            "clothing": ("scarf", "raincoat", "pair of gloves", "belt"),
        },
    ),
    ("train", "zh"): Names(
        _split("伟 芳 娜 敏 静 强 磊 洋 艳 勇 军 杰 娟 涛 明 超"),
        _split("王 李 张 刘 陈 杨 赵 黄 周 吴 徐 孙 胡 朱"),
        ("中山路", "人民路", "解放路", "建设路", "和平路", "文化路"),
        ("红色", "蓝色", "绿色", "白色"),
        {
            "厨房": ("水壶", "烤面包机", "平底锅", "茶壶"),
            "园艺": ("洒水壶", "耙子", "花箱", "吊床"),
            "办公": ("台灯", "订书机", "笔记本", "文件架"),
        },
    ),
    ("eval", "zh"): Names(
        _split("雪梅 志远 晓东 丽华 建国 思雨 浩然 雅琴 俊峰 美玲 子涵 欣怡 国栋 秋月"),
        _split("林 何 高 郭 马 罗 梁 宋 郑 谢 韩 唐 冯 董"),
        ("长江路", "滨海大道", "桃源街", "学院路", "凤凰街", "望江路"),
        ("黑色", "黄色", "银色", "条纹", "棕色"),
        {
            "运动": ("网球拍", "瑜伽垫", "头盔", "攀岩绳"),
            "旅行": ("行李箱", "背包", "颈枕", "帐篷"),
            "音乐": ("尤克里里", "节拍器", "谱架", "哑鼓垫"),
            "服装": ("围巾", "雨衣", "手套", "皮带"),
        },
    ),
}


@dataclass(frozen=True, slots=True)
class Customs:
    """How the shops of one side differ from those of the other.

    Attributes:
        customers: of a shop.
        orders: fewest and most of a customer.
        windows: days within which a refund or an exchange is allowed.
        limits: largest refunds, in euros, that need no supervisor.
        edges: days are drawn on the last day allowed and the first one not allowed, too.
    """

    customers: int
    orders: tuple[int, int]
    windows: tuple[int, ...]
    limits: tuple[int, ...]
    edges: bool


CUSTOMS: dict[Split, Customs] = {
    "train": Customs(6, (4, 7), (14, 30), (100, 200), False),
    "eval": Customs(8, (4, 9), (10, 21, 45), (80, 150, 250), True),
}
