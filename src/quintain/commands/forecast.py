"""What a simulated GRPO stage says: who waits, and which settings would make it wait less."""

from __future__ import annotations

from dataclasses import dataclass, replace

from quintain.commands.simulation import Forecast, Latency, Shop, simulate

NEAR = 0.95
"""Share of the best rate that is as good as the best: below it, more staleness or memory buys nothing."""
STEPS = 3
"""Optimiser steps of a simulation."""
SEGMENTS = 4096
"""Turns of a step that are simulated; of a larger step a slice is, with its share of engines and places."""


@dataclass(frozen=True, slots=True)
class Advice:
    """The forecast of a stage as its recipe has it, and the settings that a simulation prefers.

    Attributes:
        now: as the recipe has it.
        best: with the settings below.
        ahead: least overlap within 5 % of the best rate, as every figure here.
        concurrency: least episodes at once.
        episodes: least episodes of a step.
        rates: episodes a second of what was tried, by setting and value.
    """

    now: Forecast
    best: Forecast
    ahead: int
    concurrency: int
    episodes: int
    rates: dict[str, dict[int, float]]


def advise(shop: Shop, most: int, group_size: int) -> Advice:
    """Simulates a stage, then tries its overlap, its concurrency and its batch, one after the other.

    Args:
        shop: the stage as its recipe has it.
        most: episodes whose caches have room.
        group_size: batches are whole groups.
    """
    rates: dict[str, dict[int, float]] = {}
    groups = shop.episodes // group_size
    now = _slice(shop)
    chosen = _near_best("ahead", [replace(shop, ahead=one) for one in (0, 1, 2)], rates)
    doubled = (max(1, shop.concurrency * times // 2) for times in (1, 2, 4, 8))
    useful = [one for one in doubled if one <= min(shop.episodes, most)]
    chosen = _near_best("concurrency", [replace(chosen, concurrency=one) for one in useful] or [chosen], rates)
    batches = [max(1, groups * times // 2) * group_size for times in (1, 2, 4)]
    # An optimiser step takes as long as its batch is large.
    per_episode = shop.training / shop.episodes
    scaled = [replace(chosen, episodes=one, training=one * per_episode) for one in batches]
    chosen = _near_best("episodes", scaled, rates)
    return Advice(now, _slice(chosen), chosen.ahead, chosen.concurrency, chosen.episodes, rates)


def lines(name: str, latency: Latency, advice: Advice, group_size: int) -> list[str]:
    """The advice in words."""
    now, best = advice.now, advice.best
    tools = f"tools of {latency.median:g} s, one turn in a hundred {latency.p99:g} s"
    tried = "; ".join(
        f"{setting} {' / '.join(map(str, found))}: {' / '.join(f'{rate:.3g}' for rate in found.values())}"
        for setting, found in advice.rates.items()
    )
    settings = f"ahead = {advice.ahead}, concurrency = {advice.concurrency}, groups = {advice.episodes // group_size}"
    return [
        f"{name} simulated ({tools}): {_figures(now)}",
        f"  episodes a second by {tried}",
        f"  least settings within 5 % of the best: {settings}: {_figures(best)}",
    ]


def _slice(shop: Shop) -> Forecast:
    """Simulates as many engines as fit into SEGMENTS, with their share of the episodes; all engines are alike."""
    parts = min(shop.engines, max(1, shop.episodes * shop.turns // SEGMENTS), shop.concurrency, shop.episodes)
    engines = max(1, shop.engines // parts)
    share = engines / shop.engines
    part = replace(
        shop,
        engines=engines,
        concurrency=max(1, round(shop.concurrency * share)),
        episodes=max(1, round(shop.episodes * share)),
    )
    found = simulate(part, STEPS)
    return replace(found, rate=shop.episodes / found.step_seconds)


def _figures(found: Forecast) -> str:
    waits = f"trainer idle {found.trainer_idle:.0%}, engines idle {found.engine_idle:.0%}"
    return f"a step every {found.step_seconds:,.3g} s, {found.rate:.3g} episodes a second, {waits}"


def _near_best(setting: str, shops: list[Shop], rates: dict[str, dict[int, float]]) -> Shop:
    """The first of several that is nearly as fast as the fastest."""
    found = rates[setting] = {getattr(one, setting): _slice(one).rate for one in shops}
    best = max(found.values())
    return next(one for one in shops if found[getattr(one, setting)] >= NEAR * best)
