"""The chat completions protocol, as far as an agent with tools of its own can speak it.

What the agent thinks, calls and observes comes as `reasoning_content`, as servers of reasoning models send it; its
answer is the `content`.
"""

from __future__ import annotations

from quintain.agents.gateway.protocol import Refused, Request, read_request, text_of
from quintain.interface.episode import Episode
from quintain.interface.generation import Sampling
from quintain.serving.conversation import Said


def read_question(body: bytes, model: str) -> Request:
    """Reads and checks a body.

    Raises:
        Refused: it is no such request, asks for another model, or brings tools or what they said.
    """
    request = read_request(Request, body)
    if request.model != model:
        raise Refused(404, f"no model {request.model!r}; this server has {model!r}", "model_not_found")
    if request.tools or any(one.role == "tool" for one in request.messages):
        raise Refused(400, "tools: the agent brings its own and runs them here; leave `tools` out", "invalid_request")
    return request


def said_in(request: Request) -> tuple[list[Said], str]:
    """User and assistant messages in turn, and what the system says.

    Raises:
        Refused: they don't alternate from a user's first to a user's last, or one is no text.
    """
    said, system = [], []
    for number, one in enumerate(request.messages):
        text = text_of(one, number)
        if one.role in ("system", "developer"):
            system.append(text)
        else:
            said.append((str(one.role), text))
    roles = [role for role, _ in said]
    if roles != ["user" if place % 2 == 0 else "assistant" for place in range(len(said))] or len(said) % 2 == 0:
        found = ", ".join(roles) or "none"
        raise Refused(
            400, f"messages: user and assistant must take turns, a user last; found {found}", "invalid_request"
        )
    return said, "\n\n".join(system)


def sampling_of(request: Request, usual: Sampling) -> Sampling:
    """How tokens are drawn: as the request says, and where it is silent as the model was measured."""
    return Sampling(
        max_tokens=usual.max_tokens if request.bound is None else request.bound,
        temperature=usual.temperature if request.temperature is None else request.temperature,
        top_p=usual.top_p if request.top_p is None else request.top_p,
        top_k=usual.top_k,
    )


def answer_of(episode: Episode) -> tuple[str, str]:
    """The text and the finish reason of an episode.

    Raises:
        Refused: world or agent broke.
    """
    outcome = episode.outcome
    if outcome.kind in ("answered", "declined"):
        return episode.answer or "", "stop"
    if outcome.kind == "limit":
        return f"No answer within the limit of {outcome.limit}.", "length"
    raise Refused(500, f"{outcome.kind}: {outcome.detail}", outcome.kind)
