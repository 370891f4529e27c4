"""From an episode to training examples: loss on the agent's own tokens and on nothing else."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import takewhile

from quintain.interface.dialects.base import Dialect
from quintain.interface.dialects.history import History, Memory
from quintain.interface.episode import Episode
from quintain.interface.errors import InputError
from quintain.interface.example import Example
from quintain.interface.failures import wrong_turns
from quintain.interface.lesson import Lesson, windows
from quintain.interface.messages import Action, message
from quintain.interface.tools import Toolset


@dataclass(frozen=True, slots=True)
class _Written:
    """What turn `number` generated: `ids[start:stop]`; `trained` is False for a malformed turn."""

    number: int
    start: int
    stop: int
    trained: bool


def episode_examples(
    episode: Episode,
    *,
    window_turns: int,
    source: str = "sft",
    dialect: Dialect | None = None,
    toolset: Toolset | None = None,
) -> list[Example]:
    """Examples for behaviour cloning, one per segment, more for a segment longer than `window_turns` turns.

    A generated token carries weight 1 in exactly one example, its turn's end token included. Context, closing
    tokens the agent did not generate and malformed turns carry none, nor do the wrong turns that a continuation begins
    with. Tokens after the last one with loss are dropped.

    A long segment is cut at turn borders into windows that keep the prompt: each holds `window_turns` turns,
    of which only the later half carries loss (all of them in the first window), so that every turn is learnt
    with at least half a window of history.

    Args:
        episode: any; which ones are worth learning from is not decided here.
        window_turns: longest run of turns in one example.
        source: label of the examples.
        dialect: renders an episode without tokens (an oracle's). It is rendered up to its first turn
            that could not be understood, whose text no dialect can write.
        toolset: of that episode's world.

    Raises:
        InputError: the episode has no tokens and no dialect and toolset were given.
    """
    examples = []
    wrong = wrong_turns(episode) if episode.parent is not None else frozenset()
    for ids, written in _records(episode, dialect, toolset, split=True):
        turns = [replace(turn, trained=turn.trained and turn.number not in wrong) for turn in written]
        for window_ids, window in _windows(ids, turns, window_turns):
            example = _example(episode, window_ids, window, source)
            if example is not None:
                examples.append(example)
    return examples


def lesson_example(
    episode: Episode, lesson: Lesson, *, dialect: Dialect, toolset: Toolset, source: str = "sft"
) -> Example | None:
    """The example of one lesson; None if none of its turns can be learnt.

    Args:
        episode: the lesson's.
        lesson: the window of turns and which of them carry loss.
        dialect: writes what the lesson adds, and renders an episode without tokens.
        toolset: of the episode.
        source: label of the example.

    Raises:
        InputError: the prompt is not the one this dialect and toolset write, so no condition can be put before it.
    """
    for ids, turns in _records(episode, dialect, toolset, split=False):
        places = [place for place, turn in enumerate(turns) if lesson.first <= turn.number < lesson.last]
        if not places:
            continue
        ids, chosen = _cut(ids, turns, places[0], places[-1] + 1)
        learnt = [replace(turn, trained=turn.trained and turn.number in lesson.learnt) for turn in chosen]
        if lesson.condition:
            ids, learnt = _conditioned(ids, learnt, episode, lesson.condition, dialect, toolset)
        if lesson.judgement:
            asked = [*ids, *dialect.say(message("user", lesson.question))]
            ids = (*asked, *dialect.write(Action(answer=lesson.judgement)))
            learnt.append(_Written(lesson.last, len(asked), len(ids), trained=True))
        return _example(episode, ids, learnt, source)
    return None


def _conditioned(
    ids: tuple[int, ...], turns: list[_Written], episode: Episode, condition: str, dialect: Dialect, toolset: Toolset
) -> tuple[tuple[int, ...], list[_Written]]:
    """The same with a prompt that begins with the condition; a history that was rewritten keeps its own opening."""
    prompt = tuple(dialect.prompt(episode.messages, toolset))
    changed = tuple(dialect.prompt((message("system", condition), *episode.messages), toolset))
    pairs = zip(reversed(prompt), reversed(changed), strict=False)
    alike = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], pairs))
    head = len(prompt) - alike
    known = ids[:head] == prompt[:head] if _rewritten(episode, turns[0].number) else ids[: turns[0].start] == prompt
    if not known:
        raise InputError(
            f"episode {episode.id}: its prompt of {turns[0].start} tokens is not the one dialect {dialect.id!r} writes "
            f"({len(prompt)} tokens), so the verdict can't be put before it; use another `mask`"
        )
    shift = len(changed) - len(prompt)
    moved = [replace(turn, start=turn.start + shift, stop=turn.stop + shift) for turn in turns]
    return changed[: len(changed) - alike] + ids[head:], moved


def _rewritten(episode: Episode, turn: int) -> bool:
    """True if a turn was read in a history written anew, which does not begin as the episode does."""
    span = episode.spans[turn] if episode.spans else None
    return span is not None and episode.segments[span.segment].reason in ("summary", "discard", "new_user")


def _records(
    episode: Episode, dialect: Dialect | None, toolset: Toolset | None, *, split: bool
) -> Iterator[tuple[tuple[int, ...], list[_Written]]]:
    """Ids of each segment and what the turns in it wrote.

    Without tokens, `split` makes a segment of each run of turns that the dialect reads with their thoughts; else the
    episode is one, as the windows of a lesson take it to be.
    """
    if not episode.segments:
        if dialect is None or toolset is None:
            raise InputError(f"episode {episode.id} has no tokens: give the dialect and toolset to render it with")
        yield from _render(episode, dialect, toolset, split)
        return
    for number, segment in enumerate(episode.segments):
        pairs = zip(episode.turns, episode.spans, strict=True)
        turns = [
            _Written(place, span.start, span.stop, trained=not turn.malformed)
            for place, (turn, span) in enumerate(pairs)
            if span is not None and span.segment == number
        ]
        yield segment.ids, turns


def _render(
    episode: Episode, dialect: Dialect, toolset: Toolset, split: bool
) -> Iterator[tuple[tuple[int, ...], list[_Written]]]:
    """An episode without tokens, up to its first turn that no dialect can write: a context for each run of turns."""
    actions = [turn.action for turn in episode.turns]
    unwritten = (number for number, one in enumerate(actions) if one.error is not None or one.summary is not None)
    turns = episode.turns[: next(unwritten, len(actions))]
    history = History(dialect, episode.messages, toolset, turns, episode.user_messages)
    for first, last in history.runs() if split else [(0, len(turns))]:
        before = replace(history, turns=turns[:first])
        ids = before.ids(Memory(forgotten=first))
        made: list[_Written] = []
        for number in range(first, last):
            written = dialect.write(turns[number].action)
            made.append(_Written(number, len(ids), len(ids) + len(written), trained=not turns[number].malformed))
            answered = turns[number].observations or number + 1 in episode.user_messages
            ids = [*ids, *written, *(history.reply(number + 1) if answered else ())]
        yield tuple(ids), made


def _windows(
    ids: tuple[int, ...], turns: list[_Written], longest: int
) -> Iterator[tuple[tuple[int, ...], list[_Written]]]:
    """The segment whole, or windows of at most `longest` turns, each with the prompt."""
    for first, last, learnt_from in windows(len(turns), longest):
        window_ids, chosen = _cut(ids, turns, first, last)
        learnt = [
            replace(turn, trained=turn.trained and place >= learnt_from) for place, turn in enumerate(chosen, first)
        ]
        yield window_ids, learnt


def _cut(ids: tuple[int, ...], turns: list[_Written], first: int, last: int) -> tuple[tuple[int, ...], list[_Written]]:
    """The prompt and turns `first` to `last - 1` of a segment, with what follows the last of them."""
    if not turns:
        return ids, turns
    prompt, start = turns[0].start, turns[first].start
    end = turns[last].start if last < len(turns) else len(ids)
    shift = start - prompt
    moved = [replace(turn, start=turn.start - shift, stop=turn.stop - shift) for turn in turns[first:last]]
    return ids[:prompt] + ids[start:end], moved


def _example(episode: Episode, ids: tuple[int, ...], turns: list[_Written], source: str) -> Example | None:
    weights = [0.0] * len(ids)
    for turn in turns:
        if turn.trained:
            weights[turn.start : turn.stop] = [1.0] * (turn.stop - turn.start)
    length = max((turn.stop for turn in turns if turn.trained), default=0)
    if not length:
        return None
    return Example(
        ids=ids[:length],
        weights=tuple(weights[:length]),
        source=source,
        cluster=episode.cluster,
        episode=episode.id,
        group=episode.task_id,
        digests=episode.digests,
        version=episode.version,
    )
