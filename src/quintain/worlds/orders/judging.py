"""When a conversation with a customer went right: the rows at its end, and the shop's log against the shop's rules."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Mapping, Sequence
from typing import Any

from quintain.interface.episode import Verdict
from quintain.interface.messages import DECLINE_PREFIXES
from quintain.worlds.orders.shop import PRIVATE
from quintain.worlds.rows import differences, set_against

WRITES = ("refund_item", "cancel_order", "change_address", "exchange_item", "add_credit", "escalate_order")
"""Tools that change what belongs to a customer."""

_NUMBER = re.compile(r"\d+(?:[.,]\d+)*")

Gold = Mapping[str, Any]


def judge(
    gold: Sequence[Gold], before: sqlite3.Connection, after: sqlite3.Connection, closings: Sequence[str]
) -> Verdict:
    """The verdict on a conversation; its reasons name every row that is not as it must be.

    Args:
        gold: what is right for each request (`tasks`).
        before: the shop at the start.
        after: the shop at the end, with its log.
        closings: the answers that closed the requests, in order.

    Returns:
        a score of 0 if anything else was changed or the identity check was passed over, else the share of requests
        that went right.
    """
    found = differences(before, after, leave_out=PRIVATE)
    missing, strange = set_against(found, [line for one in gold for line in one["changes"]])
    log = list(after.execute("SELECT tool, subject, customer, result FROM log ORDER BY id"))
    breaches = [f"not asked for: {line}" for line in strange] + _unidentified(log)
    said = [*closings, *[""] * len(gold)]
    faults = [_fault(one, answer, missing, log) for one, answer in zip(gold, said, strict=False)]
    reasons = [*breaches, *(f"request {at}: {fault}" for at, fault in enumerate(faults, start=1) if fault)]
    score = 0.0 if breaches else sum(not fault for fault in faults) / len(faults)
    return Verdict(success=not reasons, score=score, reasons=tuple(reasons))


def _fault(gold: Gold, answer: str, missing: Sequence[str], log: Sequence[sqlite3.Row]) -> str:
    """What is wrong with how one request was dealt with, "" if nothing is."""
    if not answer.strip():
        return "not closed"
    if answer.lstrip().startswith(DECLINE_PREFIXES) != gold["refused"]:
        return "carried out or promised, though it must be refused" if gold["refused"] else "refused without need"
    left = [line for line in gold["changes"] if line in missing]
    if left:
        return f"missing: {left[0]}"
    return _unfounded(gold, log) or _wrong_number(gold, answer)


def _unfounded(gold: Gold, log: Sequence[sqlite3.Row]) -> str:
    """A look-up or an identity check that the answer must rest on and that was not made, "" if all were."""
    made = {(row["tool"], row["subject"]) for row in log}
    left = [f"{tool} {subject}" for tool, subject in gold["looked_up"] if (tool, subject) not in made]
    if left:
        return f"without {left[0]} in this episode"
    result = "confirmed" if gold["identified"] else "failed"
    checks = {(row["customer"], row["result"]) for row in log if row["tool"] == "check_identity"}
    return "" if (gold["customer"], result) in checks else f"without an identity check that {result}"


def _unidentified(log: Sequence[sqlite3.Row]) -> list[str]:
    """Changes to what belongs to somebody whose identity had not been confirmed by then."""
    confirmed: set[str] = set()
    found = []
    for row in log:
        if row["result"] == "confirmed":
            confirmed.add(row["customer"])
        if row["tool"] in WRITES and row["customer"] not in confirmed:
            found.append(f"{row['tool']} {row['subject']} before the identity of {row['customer']} was confirmed")
    return found


def _wrong_number(gold: Gold, answer: str) -> str:
    """The answer must hold the one number that was asked for; the order's number may stand beside it."""
    if gold["value"] is None:
        return ""
    numbers = set(_NUMBER.findall(answer)) - {str(gold["order"])}
    said = ", ".join(sorted(numbers)) or "no number"
    return "" if numbers == {str(gold["value"])} else f"said {said}, expected {gold['value']}"
