"""A sheet of sampled trajectories for a person to read: numbers rise for bad reasons too."""

from __future__ import annotations

import json
import random
from collections.abc import Mapping, Sequence

from quintain.interface.episode import Episode

SHEET = "sheet.md"
"""Of an evaluation, in its stage's folder."""
EPISODES = 8
LONGEST = 600
"""Characters of one text that the sheet shows."""


def sheet(episodes: Sequence[Episode], title: str) -> str:
    """Markdown with the sampled episodes."""
    by_id = {one.id: one for one in episodes}
    chosen = [by_id[name] for name in sampled({name: one.success for name, one in by_id.items()}, title)]
    wins = f"{sum(one.success for one in episodes)} of {len(by_id)} episodes succeed; {len(chosen)} of them are below."
    questions = "Is every success deserved? Is every failure the agent's? Does it repeat itself, or exploit the world?"
    return "\n".join([f"# {title}", "", wins, questions, "", *(_episode(one) for one in chosen)])


def sampled(successes: Mapping[str, bool], title: str) -> list[str]:
    """Ids of up to `EPISODES` episodes, half of them no success where there are enough; fixed by the title.

    Args:
        successes: whether each episode succeeded, by id.
        title: of the sheet.
    """
    order = sorted(successes)
    random.Random(title).shuffle(order)
    good = [name for name in order if successes[name]]
    bad = [name for name in order if not successes[name]]
    half = EPISODES // 2
    return [*bad[: max(half, EPISODES - len(good))], *good[: max(half, EPISODES - len(bad))]]


def evaluation_title(stage: str) -> str:
    """Title of an evaluation's sheet."""
    return f"Evaluation {stage}"


def _episode(episode: Episode) -> str:
    judged = ("success" if episode.success else "failure") if episode.scored else "no score"
    lines = [f"## {episode.id}: {judged}, {episode.outcome}", ""]
    lines += [f"- {message.role}: {_short(message.text)}" for message in episode.messages]
    for number, turn in enumerate(episode.turns, start=1):
        action = turn.action
        lines += [f"- thinks: {_short(action.thought)}"] if action.thought else []
        lines += [
            f"- calls {call.tool} {_short(json.dumps(call.arguments, ensure_ascii=False))}" for call in action.calls
        ]
        lines += [f"- malformed: {_short(action.text)}"] if action.error else []
        lines += [f"- sums up: {_short(action.summary)}"] if action.summary is not None else []
        lines += [f"- answers: {_short(action.answer)}"] if action.answer is not None else []
        lines += [f"  - sees: {_short(one.content)}" for one in turn.observations]
        said = episode.user_messages.get(number)
        lines += [f"- user: {_short(said.text)}"] if said else []
    reasons = episode.verdict.reasons if episode.verdict else (episode.outcome.detail,)
    return "\n".join([*lines, f"- verdict: {_short('; '.join(reasons)) or '-'}", ""])


def _short(text: str) -> str:
    """One line, as JSON would spell it, so that nothing in it can look like another line of the sheet."""
    cut = text if len(text) <= LONGEST else text[:LONGEST] + f"... ({len(text)} characters)"
    return json.dumps(cut, ensure_ascii=False)[1:-1]
