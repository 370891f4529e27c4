"""The commands that judge: `doctor`, `compare`, `gate`; and `judge`, which measures a judge."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from quintain.cli.output import add_json, finish, judged


def add_judging(commands: Any) -> None:
    """Adds them to the command line."""
    one = commands.add_parser(
        "doctor",
        help="examine a recipe before any compute is spent; exit 1 on a failure",
        description="Plays a few tasks of every pool with agents whose results are known beforehand, writes them as "
        "tokens and reads them back, and looks at machine and sandbox. One screen; nothing is trained or written.",
    )
    one.add_argument("recipe", type=Path, metavar="RECIPE", help="a TOML file, see recipes/")
    add_json(one)
    one.set_defaults(command=_doctor)

    one = commands.add_parser(
        "compare",
        help="hold evaluations against each other, paired by task",
        description="Compares every evaluation with the first, task by task: models, prompts, examples, tools' "
        "descriptions. Prints the difference with its 95 % interval, p-values as they are and adjusted for their "
        "number, and what an episode cost.",
    )
    one.add_argument(
        "runs", type=Path, nargs="+", metavar="RUN", help="a run's folder (its last eval stage), or RUN/STAGE"
    )
    add_json(one)
    one.set_defaults(command=_compare)

    one = commands.add_parser(
        "gate",
        help="exit 1 if a checkpoint is worse than its baseline",
        description="Compares an evaluation with a baseline's, task by task, and exits with 1 if it is worse by more "
        "than the margin beyond what chance explains. States the test, and the smallest loss that so many tasks find.",
    )
    one.add_argument("run", type=Path, metavar="RUN", help="the checkpoint's evaluation: a run's folder, or RUN/STAGE")
    one.add_argument("--baseline", type=Path, required=True, metavar="RUN", help="the baseline's evaluation")
    one.add_argument("--margin", type=float, default=0.03, help="loss of pass@1 that is put up with (default: 0.03)")
    add_json(one)
    one.set_defaults(command=_gate)

    one = commands.add_parser(
        "judge",
        help="hold the judge of a world `research` against answers whose truth is known",
        description="Asks the judge model of the recipe's world `research` about every labelled answer, and prints "
        "agreement, precision, recall and Cohen's kappa with 95 % intervals: of the rule alone, the judge alone, and "
        "both as the world uses them. Replies are kept in the folder; a second run pays for none twice.",
    )
    one.add_argument("recipe", type=Path, metavar="RECIPE", help="its [world] options have a `judge`")
    one.add_argument(
        "labelled",
        type=Path,
        nargs="?",
        metavar="LABELLED",
        help="JSON Lines of question, gold, answer and correct (default: a small set that comes along)",
    )
    one.add_argument("--out", type=Path, default=Path("runs/judge"), metavar="FOLDER", help="default: runs/judge")
    add_json(one)
    one.set_defaults(command=_judge)


def _doctor(options: argparse.Namespace) -> int:
    from quintain.doctor.doctor import examine

    return judged(lambda: examine(options.recipe), options.json)


def _compare(options: argparse.Namespace) -> int:
    from quintain.pipeline.comparison import compare_runs

    return finish(lambda: compare_runs(options.runs), options.json)


def _gate(options: argparse.Namespace) -> int:
    from quintain.pipeline.comparison import gate_runs

    return judged(lambda: gate_runs(options.run, options.baseline, options.margin), options.json)


def _judge(options: argparse.Namespace) -> int:
    from quintain.commands.answer_judge import judge_agreement

    return finish(lambda: judge_agreement(options.recipe, options.labelled, options.out), options.json)
