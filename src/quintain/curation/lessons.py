"""From an episode to lessons: which windows are learnt, and which of their turns carry loss.

The modes differ in what they do with a failed episode and its wrong turns:

- `agent`: every turn the agent wrote carries loss.
- `wrong_turns`: wrong turns stay in view and carry none.
- `verdict_prefix`: every turn carries loss, and of a failed episode the system says first that it fails, as in
  negative-aware training (Wang et al. 2024, arXiv:2402.11651). There successes get a prefix too; here they keep their
  plain prompt, so that the trained agent is asked as it was before.
- `verdict_suffix`: every turn carries loss, and the agent judges itself at the end, as the decisions of
  AgentFounder do (Su et al. 2025, arXiv:2509.13310). Only where it gave an answer to judge.

A malformed turn never carries loss, in any mode.
"""

from __future__ import annotations

from itertools import groupby

from quintain.curation.config import Mask
from quintain.interface.episode import Episode
from quintain.interface.failures import recovered, wrong_turns
from quintain.interface.lesson import Lesson, windows

CONDITION = {"en": "The following attempt does not solve the task.", "zh": "下面的尝试没有完成任务。"}
QUESTION = {"en": "Was your answer right?", "zh": "你的回答正确吗？"}
JUDGEMENT = {True: "My decision is Correct.", False: "My decision is Incorrect."}


def lessons_of(
    episode: Episode, source: str, mask: Mask, window_turns: int, most_calls: int | None = None
) -> list[Lesson]:
    """The episode's lessons; none if no turn would carry loss, or the mode has no place for it.

    Args:
        episode: a fit one.
        source: name of the journal it lies in.
        mask: which tokens carry loss.
        window_turns: longest run of turns in one lesson.
        most_calls: calls a turn may hold; one with more is malformed.
    """
    ends_in_answer = episode.turns[-1].action.answer is not None
    if mask == "verdict_suffix" and not ends_in_answer:
        return []
    unlearnt = _malformed(episode, most_calls) | (wrong_turns(episode) if mask == "wrong_turns" else frozenset())
    found = []
    for turns in _segments(episode):
        for first, last, learnt_from in windows(len(turns), window_turns):
            places = turns[learnt_from:last]
            learnt = tuple(one for one in places if one not in unlearnt)
            judged = mask == "verdict_suffix" and turns[last - 1] == len(episode.turns) - 1
            if learnt or judged:
                found.append(_lesson(episode, source, turns[first], turns[last - 1] + 1, learnt, mask, judged))
    return found


def _malformed(episode: Episode, most_calls: int | None) -> set[int]:
    return {
        place
        for place, turn in enumerate(episode.turns)
        if turn.malformed or (most_calls is not None and len(turn.action.calls) > most_calls)
    }


def _lesson(
    episode: Episode, source: str, first: int, last: int, learnt: tuple[int, ...], mask: Mask, judged: bool
) -> Lesson:
    language = "zh" if "lang:zh" in episode.tags else "en"
    return Lesson(
        source=source,
        episode=episode.id,
        first=first,
        last=last,
        learnt=learnt,
        condition=CONDITION[language] if mask == "verdict_prefix" and not recovered(episode) else "",
        question=QUESTION[language] if judged else "",
        judgement=JUDGEMENT[recovered(episode)] if judged else "",
    )


def _segments(episode: Episode) -> list[list[int]]:
    """Numbers of the turns that share a context.

    An episode without tokens is one context, which ends before its first turn that no dialect can write.
    """
    if not episode.segments:
        cut = next((place for place, turn in enumerate(episode.turns) if turn.action.error), len(episode.turns))
        return [list(range(cut))] if cut else []
    held = [(span.segment, place) for place, span in enumerate(episode.spans) if span is not None]
    return [[place for _, place in group] for _, group in groupby(held, key=lambda one: one[0])]
