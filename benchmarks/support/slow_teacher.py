"""A chat server that takes its time: `slow_teacher.py FILE SECONDS`, FILE being JSON of replies by prompt.

It writes its port on a line, serves until its input ends, and then writes how busy it was.
"""

from __future__ import annotations

import asyncio
import json
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from aiohttp import web

IN_FLIGHT = 256


@dataclass
class Places:
    """How many of a teacher's places are taken, over time.

    Attributes:
        asked: requests so far.
        now: places taken.
    """

    asked: int = 0
    now: int = 0
    _area: float = 0.0
    _began: float = 0.0
    _last: float = 0.0
    _full_until: float = 0.0
    _full_area: float = 0.0

    def take(self) -> None:
        """A request comes in."""
        self.asked += 1
        if self.asked == 1:
            self._began = self._last = self._full_until = time.perf_counter()
        self._move(1)

    def free(self) -> None:
        """Its reply goes out."""
        self._move(-1)

    def _move(self, change: int) -> None:
        moment = time.perf_counter()
        self._area += self.now * (moment - self._last)
        self._last = moment
        self.now += change
        if self.now == IN_FLIGHT:
            self._full_until, self._full_area = moment, self._area

    def figures(self) -> dict[str, float]:
        """Shares of all places that were taken: until the last moment at which all were, and until the end."""
        full, whole = self._full_until - self._began, self._last - self._began
        return {
            "requests": self.asked,
            "seconds_until_the_last_full_moment": full,
            "busy": self._full_area / (full * IN_FLIGHT) if full else 0.0,
            "busy_with_the_tail": self._area / (whole * IN_FLIGHT) if whole else 0.0,
        }


@dataclass
class SlowTeacher:
    """The server.

    Attributes:
        replies: by prompt.
        seconds: each takes.
    """

    replies: dict[str, str]
    seconds: float
    places: Places = field(default_factory=Places)

    async def complete(self, request: web.Request) -> web.Response:
        """One chat completion, after a while."""
        self.places.take()
        asked = await request.json()
        text = self.replies[asked["messages"][0]["content"]]
        await asyncio.sleep(self.seconds)
        self.places.free()
        return web.json_response(completion(asked["model"], text))

    async def serve(self) -> None:
        """Until the input ends."""
        app = web.Application(client_max_size=2**24)
        app.router.add_post("/v1/chat/completions", self.complete)
        runner = web.AppRunner(app, access_log=None)
        await runner.setup()
        site = web.TCPSite(runner, "127.0.0.1", 0, backlog=IN_FLIGHT)
        await site.start()
        print(runner.addresses[0][1], flush=True)
        await asyncio.to_thread(sys.stdin.read)
        await runner.cleanup()


def completion(model: str, text: str) -> dict[str, Any]:
    """A reply as the protocol has it."""
    message = {"role": "assistant", "content": text}
    usage = {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}
    choices = [{"index": 0, "finish_reason": "stop", "message": message}]
    return {"id": "1", "object": "chat.completion", "created": 0, "model": model, "choices": choices, "usage": usage}


def main() -> None:
    teacher = SlowTeacher(json.loads(Path(sys.argv[1]).read_text(encoding="utf-8")), float(sys.argv[2]))
    asyncio.run(teacher.serve())
    print(json.dumps(teacher.places.figures()))


if __name__ == "__main__":
    main()
