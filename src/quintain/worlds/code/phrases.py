"""What the reference solution thinks and says."""

from __future__ import annotations

from typing import Final

THOUGHTS: Final = {
    "en": {
        "list": "I look at what there is.",
        "read": "I read the file first.",
        "test": "I run the tests.",
        "run": "I run it.",
        "write": "I write the file.",
        "patch": "I see the mistake and correct it.",
        "done": "It works.",
    },
    "zh": {
        "list": "我先看看有什么文件。",
        "read": "我先读这个文件。",
        "test": "我运行测试。",
        "run": "我运行它。",
        "write": "我来写这个文件。",
        "patch": "我看到了错误，改正它。",
        "done": "可以了。",
    },
}
CLOSING: Final = {"en": "{file} is done.", "zh": "{file} 已完成。"}
