"""The card of an exported model: what it is, how it was made, how good it is and how that is known."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from quintain.evaluation.summary import Comparison, compare
from quintain.export.licence import Licence
from quintain.inference.models import DEFAULT, DEFAULT_HUB
from quintain.interface.errors import InputError
from quintain.interface.tools import Toolset
from quintain.pipeline.auditing import read_audit
from quintain.pipeline.comparison import read_evaluation
from quintain.pipeline.lineage import ancestors, is_done
from quintain.pipeline.run import read_manifest
from quintain.pipeline.workshop import Workshop
from quintain.recipe import EvalStage
from quintain.recipe.tables import SamplingSection


@dataclass(frozen=True, slots=True)
class KnownWorld:
    """A world that an exported model knows.

    Attributes:
        name: of the world.
        instructions: the system message of its episodes; "" for none.
        toolset: its tools, in the order of the model's prompts.
        alone: the model knows no other.
    """

    name: str
    instructions: str
    toolset: Toolset
    alone: bool

    @property
    def tools_file(self) -> str:
        """The tools as a request's `tools`."""
        return "tools.json" if self.alone else f"tools-{self.name}.json"

    @property
    def system_file(self) -> str:
        """The text of the system message."""
        return "system.txt" if self.alone else f"system-{self.name}.txt"


def model_card(
    workshop: Workshop,
    stage: str,
    worlds: Sequence[KnownWorld],
    form: str,
    licence: Licence,
    sampling: SamplingSection,
) -> str:
    """The card as Markdown with the front matter that model hubs read.

    Args:
        workshop: of the run.
        stage: that trained the model.
        worlds: those it knows.
        form: `model` or `adapter`.
        licence: of the base model.
        sampling: how its tokens were drawn when it was measured.
    """
    base = public_name(workshop.recipe.model.base)
    named = ", ".join(f"`{one.section.world}`" for one in workshop.worlds.values())
    place = "world" if len(workshop.worlds) == 1 else "worlds"
    sections = (
        _front_matter(base, licence, form),
        f"# {workshop.recipe.name}: {stage}",
        f"An agent for the {place} {named}, trained from `{base}` with quintain.",
        _use(workshop.recipe.model.dialect, form, sampling, worlds),
        _results(workshop, stage),
        _lineage(workshop, stage),
        _tools(worlds),
        _limits(workshop.recipe.model.dialect),
        _licence(base, licence),
    )
    return "\n\n".join(sections) + "\n"


def public_name(base: str) -> str:
    """A base model without the folders of the machine it lies on."""
    if base == DEFAULT:
        return DEFAULT_HUB
    return Path(base).name if Path(base).is_absolute() or Path(base).is_dir() else base


def _front_matter(base: str, licence: Licence, form: str) -> str:
    known = [f"base_model: {json.dumps(base)}"] if base.count("/") == 1 else []
    library = "peft" if form == "adapter" else "transformers"
    lines = [f"license: {licence.identifier}", *known, f"library_name: {library}", "pipeline_tag: text-generation"]
    return "\n".join(["---", *lines, "tags:", "- agent", "- tool-use", "- quintain", "---"])


def _use(dialect: str, form: str, sampling: SamplingSection, worlds: Sequence[KnownWorld]) -> str:
    served = "BASE --enable-lora --lora-modules agent=." if form == "adapter" else "."
    parser = " --enable-auto-tool-choice --tool-call-parser hermes" if dialect == "hermes" else ""
    greedy = ", greedy: ask servers for temperature 0" if not sampling.temperature else ""
    calls = (
        "Calls come back as `tool_calls`."
        if parser
        else f"Calls come back as text of the dialect `{dialect}`: no parser of these servers reads it, "
        "`quintain serve RUN` does, and runs the tools too."
    )
    return f"""## Use

```bash
vllm serve {served}{parser}
transformers serve .
```

Send the texts that the model was trained on, tools in this order:

{_request(worlds)}

The chat template writes the tokens of training. {calls} Tokens are drawn with temperature {sampling.temperature:g},
top_p {sampling.top_p:g} and at most {sampling.max_tokens} a turn{greedy}. So were the results below, if there are
any."""


def _request(worlds: Sequence[KnownWorld]) -> str:
    """Which files make a request, a line for each world."""
    return "\n".join(
        f"- world `{one.name}`: `{one.tools_file}` as `tools`, "
        + (f"`{one.system_file}` as the system message" if one.instructions else "no system message")
        for one in worlds
    )


def _results(workshop: Workshop, stage: str) -> str:
    stages = [one for one in workshop.recipe.stages if isinstance(one, EvalStage) and not one.endpoint]
    mine = [one for one in stages if one.model == stage and is_done(workshop.folder, one.name)]
    if not mine:
        return "## Results\n\nNot measured: this run has no finished evaluation of this model."
    bases = [one for one in stages if one.model == "base" and is_done(workshop.folder, one.name)]
    rows = [_row(workshop.folder, one) for one in (*bases, *mine)]
    lines = [line for one in mine for line in (*_gains(workshop.folder, bases, one), _contamination(workshop, one))]
    return "\n".join(
        [
            "## Results",
            "",
            "| Evaluation | Model | Pool | pass@1 [95 % interval] | Tasks | Episodes scored / planned |",
            "|---|---|---|---|---|---|",
            *rows,
            "",
            "pass@1 is the mean over all scored episodes, never the best of several; intervals are by cluster.",
            "",
            *[f"- {line}" for line in lines],
        ]
    )


def _row(run: Path, one: EvalStage) -> str:
    overall = json.loads((run / one.name / "evaluation.json").read_text(encoding="utf-8"))["overall"]
    value, counts = overall["pass1"], overall["counts"]
    shown = f"{value['value']:.3f} [{value['low']:.3f}, {value['high']:.3f}]" if value else "no scored episode"
    faults = f", faults `{one.faults}`" if one.faults else ""
    cells = (one.name, one.model, f"`{one.pool}`{faults}", shown, counts["tasks"])
    return f"| {' | '.join(map(str, cells))} | {counts['scored']} / {counts['planned']} |"


def _gains(run: Path, bases: list[EvalStage], mine: EvalStage) -> list[str]:
    """The difference from the base model, where both were measured alike."""
    same = [one for one in bases if (one.pool, one.faults) == (mine.pool, mine.faults)]
    if not same:
        return []
    before, after = read_evaluation(run / same[-1].name), read_evaluation(run / mine.name)
    try:
        found: Comparison = compare(before.episodes, after.episodes)
    except InputError as error:  # no task is scored in both
        return [f"{mine.name} against {same[-1].name}: {error}"]
    one = found.difference.estimate
    return [
        f"{mine.name} against {same[-1].name}: {one.value:+.3f} [{one.low:+.3f}, {one.high:+.3f}], "
        f"p = {found.difference.p_value:.4f}, paired over {found.tasks} tasks"
    ]


def _contamination(workshop: Workshop, one: EvalStage) -> str:
    audit = read_audit(workshop.folder / one.name)
    return f"{one.name}: {audit.get('line') or 'contamination: no scan was made, so it is not known'}"


def _lineage(workshop: Workshop, stage: str) -> str:
    stages = workshop.recipe.stages
    made = {one.name for one in ancestors(stages, stage)}
    rows = [_stage_row(workshop.folder, one) for one in stages if one.name in made]
    table = ["| Stage | Kind | What it did | Minutes | Fingerprint |", "|---|---|---|---|---|", *rows]
    digests = [f"- {name}: `{value}`" for name, value in _manifest(workshop, stage)["digests"].items()]
    return "\n".join(["## Lineage", "", *table, "", "Digests:", "", *digests])


def _manifest(workshop: Workshop, stage: str) -> dict[str, Any]:
    found = read_manifest(workshop.folder / stage)
    assert found is not None, "only finished stages are exported"
    return found


def _stage_row(run: Path, one: Any) -> str:
    found = read_manifest(run / one.name)
    if found is None:
        return f"| {one.name} | {one.kind} | not in this folder any more | | |"
    line = str(found["result"].get("line", "")).replace("|", "\\|")
    return f"| {one.name} | {one.kind} | {line} | {found['seconds'] / 60:.1f} | `{found['fingerprint'][-12:]}` |"


def _tools(worlds: Sequence[KnownWorld]) -> str:
    parts = [line for one in worlds for line in _tools_of(one)]
    return "\n".join(["## Tools", "", *parts, "`tools.lock` holds schemas and the shapes of results."])


def _tools_of(world: KnownWorld) -> list[str]:
    lines = [f"- `{one.signature()}`: {one.description}" for one in world.toolset]
    return [*lines, "", f"Digest of the toolset of `{world.name}`: `{world.toolset.digest}`.", ""]


def _limits(dialect: str) -> str:
    return f"""## Limits

- It knows these tools. With others, or with other descriptions, these results say nothing.
- Programs that render by chat template (dialect `{dialect}`) can't tell a special token from its spelling in a text.
  Let no stranger's text in without looking for these spellings.
- What a tool returns can persuade it. Give it tools whose worst use you can bear."""


def _licence(base: str, licence: Licence) -> str:
    if licence.identifier == "other":
        text = f"That of `{base}`, which is not recorded here: look it up before you pass the model on."
    else:
        text = f"That of `{base}`: {licence.identifier}."
    return f"## Licence\n\n{text}"
