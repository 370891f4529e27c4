"""What a teacher says of trouble: what went wrong, and what it does about it. One sentence for each case.

A small model learns one sentence for one situation; what varies at random can't be learnt. It does what the sentence
says: one that goes on names the tool it goes on with. And remedies begin differently: first words decide the rest.
"""

from __future__ import annotations

from typing import Literal

from quintain.interface.messages import Observation

Remedy = Literal[
    "retry",  # the same call once more
    "last_retry",  # the same call for the last time
    "correct",  # another tool in place of a wrong call
    "differently",  # the same tool, called as it should be
    "rewrite",  # a well-formed call in place of a malformed one
    "without",  # on without a tool that can't be used
    "useless",  # on without a result that says nothing
    "enough",  # an answer, for no more is needed
    "decline",  # it can't be done, and that is said
]

Language = Literal["en", "zh"]

_RETRY: dict[str, dict[Language, str]] = {
    "timeout": {"en": "{tool} did not answer in time; I try again.", "zh": "{tool} 没有及时回答，我再试一次。"},
    "server_error": {"en": "The server of {tool} failed; I try again.", "zh": "{tool} 的服务器出错了，我再试一次。"},
    "rate_limit": {"en": "{tool} asks me to wait; then I try again.", "zh": "{tool} 要我等一等，然后我再试一次。"},
    "empty_result": {"en": "Nothing came back; I try again.", "zh": "什么也没有返回，我再试一次。"},
    "truncated": {"en": "The result is cut off; I get it again.", "zh": "结果不完整，我再取一次。"},
    "stale": {"en": "That is an old copy; I get it again.", "zh": "这是旧的副本，我再取一次。"},
    "missing_field": {"en": "What I need is missing; I get it again.", "zh": "缺少我需要的内容，我再取一次。"},
    "wrong_type": {"en": "That is no proper result; I try again.", "zh": "这不是正常的结果，我再试一次。"},
}

_OTHER: dict[Remedy, dict[Language, str]] = {
    # says so, for a model can read a number of tries in a text but not count them in its history
    "last_retry": {"en": "{tool} fails again; I try one last time.", "zh": "{tool} 又失败了，我再试最后一次。"},
    "correct": {"en": "{tool} can't do that; {next} can.", "zh": "{tool} 做不到这个，{next} 可以。"},
    "differently": {"en": "Wrong use of {tool}; this is right.", "zh": "刚才 {tool} 用得不对，这样才对。"},
    "rewrite": {"en": "That was no proper call; I write it again.", "zh": "刚才的写法不对，我重写一次。"},
    "without": {"en": "No {tool} then; {next} will do.", "zh": "没有 {tool}，用 {next} 就行。"},
    "useless": {"en": "Nothing of use; {next} will do.", "zh": "没有有用的内容，用 {next} 就行。"},
    "enough": {"en": "I know enough to answer.", "zh": "我知道的已经够回答了。"},
    "decline": {"en": "It can't be done without {tool}.", "zh": "缺了 {tool} 就做不到。"},
}

_REASONS: dict[str, dict[Language, str]] = {
    "timeout": {"en": "it does not answer", "zh": "它不回答"},
    "server_error": {"en": "its server fails", "zh": "它的服务器出错"},
    "rate_limit": {"en": "its limit is reached", "zh": "它的限额已用完"},
    "permission_denied": {"en": "I have no permission", "zh": "我没有权限"},
    "tool_gone": {"en": "it is gone", "zh": "它已不存在"},
}
_DAMAGED: dict[Language, str] = {"en": "its results are damaged", "zh": "它的结果有误"}


def analysis(trouble: Observation, remedy: Remedy, language: Language, following: str = "") -> str:
    """What went wrong in one observation and what is done about it.

    Args:
        trouble: what came back.
        remedy: what is done.
        language: of the sentence.
        following: name of the tool that is called next.
    """
    said = _RETRY[trouble.fault or trouble.error] if remedy == "retry" else _OTHER[remedy]
    return said[language].format(tool=trouble.tool, next=following)


def declined(trouble: Observation, language: Language) -> str:
    """An answer that says honestly what can't be done, and why."""
    reason = _REASONS.get(trouble.fault, _DAMAGED)[language]
    if language == "zh":
        return f"无法回答：{trouble.tool} 无法使用，{reason}。"
    return f"Cannot answer: {trouble.tool} can't be used, {reason}."
