"""The local page of `quintain view`: lists, episodes and judgements as JSON, and the page that shows them."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import cached_property
from pathlib import Path
from typing import Any

from pydantic import ValidationError
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.middleware.trustedhost import TrustedHostMiddleware
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, Response
from starlette.routing import Route

from quintain.agents.gateway.http import read_body
from quintain.agents.gateway.protocol import Refused
from quintain.curation.review import Judgement, add_correction, add_judgement
from quintain.evaluation.report import ReportData, StageReport, html_page, page_file, report_html, report_json
from quintain.evaluation.trajectories import EMBED_LIMIT, SampledEpisode, Vocabulary, episode_json
from quintain.interface.errors import InputError
from quintain.pipeline.reporting import Renderer, decoder
from quintain.pipeline.run import read_manifest, read_recipe
from quintain.pipeline.workshop import Workshop
from quintain.serving.app import LOOPBACK
from quintain.synthesis.corrections import checked_correction
from quintain.viewing.index import FACETS, Index, Query

ROWS = 100
"""Of the list, in one reply."""

Handler = Callable[[Request], Awaitable[Response]]


class Viewer:
    """What the page asks for.

    Args:
        index: of the run's episodes.
    """

    def __init__(self, index: Index) -> None:
        self.index = index
        recipe, home = read_recipe(index.run)
        self._workshop = Workshop(recipe, home, index.run, accept_drift=True)
        manifests = [found for stage in recipe.stages if (found := read_manifest(index.run / stage.name))]
        self._done = [one for one in manifests if one["status"] == "done"]
        self._read_by = {name for one in self._done for name in one["stage"].get("data", ())}

    def page(self) -> str:
        """The page, without any episode."""
        page: dict[str, Any] = {"title": f"Run {self._workshop.recipe.name}", "stages": [], "vocabulary": []}
        style = page_file("report.css") + _file("view.css")
        script = page_file("base.js") + page_file("episode.js") + _file("view.js")
        return html_page(page["title"], style, script, page, connect="'self'")

    def rows(self, query: Query, first: int) -> dict[str, Any]:
        """A stretch of the list."""
        return {
            "total": self.index.count(query),
            "rows": self.index.page(query, first, ROWS),
            "facets": self.index.facets(query) if first == 0 else None,
        }

    def episode(self, key: int) -> dict[str, Any]:
        """One episode as the page shows it, with the texts of its tokens."""
        vocabulary = Vocabulary()
        shown = episode_json(self._sample(key), vocabulary, self._decode)
        return {"episode": shown, "vocabulary": vocabulary.texts}

    def judge(self, key: int, said: bytes) -> dict[str, Any]:
        """Keeps what a person says of an episode."""
        try:
            one = Judgement.model_validate_json(said)
        except ValidationError as error:
            raise InputError(f"judgement: {error.errors()[0]['msg']}") from None
        stage, episode = self.index.episode(key)
        if (one.stage, one.episode) != (stage, episode.id):
            raise InputError(f"judgement: of {one.stage}/{one.episode}, but the key is that of {stage}/{episode.id}")
        kept = add_judgement(self.index.run, one)
        self.index.set_flag(key, kept.flag)
        return kept.model_dump()

    def correct(self, key: int, line: bytes) -> dict[str, Any]:
        """Keeps a turn that a person rewrote."""
        stage, episode = self.index.episode(key)
        record = checked_correction(line, stage, episode, self._workshop.toolset(episode.world))
        add_correction(self.index.run, record)
        return record

    def share(self, query: Query) -> str:
        """The first episodes that fit as a report's page: one file, no server."""
        rows = self.index.page(query, 0, EMBED_LIMIT)
        stages = list(dict.fromkeys(row["stage"] for row in rows))
        data = ReportData(
            title=f"Episodes of {self._workshop.recipe.name}",
            stages=[StageReport(name, "episodes") for name in stages],
            episodes=[self._sample(row["key"]) for row in rows],
            decode_tokens=self._decode,
        )
        return report_html(data, report_json(data))

    def _sample(self, key: int) -> SampledEpisode:
        stage, episode = self.index.episode(key)
        examples = self._renderer.examples(stage, episode)
        return SampledEpisode(stage, episode, "training" if stage in self._read_by else "evaluation", examples)

    @cached_property
    def _renderer(self) -> Renderer:
        return Renderer(self._workshop, self._done)

    @cached_property
    def _decode(self) -> Any:
        return decoder(self.index.run, self._done)


def make_app(viewer: Viewer) -> Starlette:
    """The application; it answers to the loopback's own names only, and takes JSON only."""

    def guarded(handler: Handler) -> Handler:
        async def handle(request: Request) -> Response:
            try:
                return await handler(request)
            except InputError as error:
                return JSONResponse({"error": str(error)}, 400)
            except Refused as refused:
                return JSONResponse({"error": str(refused)}, refused.status)

        return handle

    async def page(_: Request) -> Response:
        return HTMLResponse(viewer.page())

    async def rows(request: Request) -> Response:
        return JSONResponse(viewer.rows(_query(request), _number(request.query_params.get("first", "0"))))

    async def spot_checks(_: Request) -> Response:
        return JSONResponse(viewer.index.spot_checks())

    async def episode(request: Request) -> Response:
        return JSONResponse(viewer.episode(request.path_params["key"]))

    async def judge(request: Request) -> Response:
        return JSONResponse(viewer.judge(request.path_params["key"], await read_body(request)))

    async def correct(request: Request) -> Response:
        return JSONResponse(viewer.correct(request.path_params["key"], await read_body(request)))

    async def share(request: Request) -> Response:
        save = {"Content-Disposition": 'attachment; filename="episodes.html"'}
        return HTMLResponse(viewer.share(_query(request)), headers=save)

    routes = [
        Route("/", guarded(page)),
        Route("/episodes", guarded(rows)),
        Route("/spot-checks", guarded(spot_checks)),
        Route("/episodes/{key:int}", guarded(episode)),
        Route("/episodes/{key:int}/flag", guarded(judge), methods=["POST"]),
        Route("/episodes/{key:int}/correction", guarded(correct), methods=["POST"]),
        Route("/episodes.html", guarded(share)),
    ]
    hosts = Middleware(TrustedHostMiddleware, allowed_hosts=[*LOOPBACK, "[::1]"])
    return Starlette(routes=routes, middleware=[hosts])


def _query(request: Request) -> Query:
    asked = request.query_params
    facets = tuple((name, asked[name]) for name in FACETS if name in asked)
    return Query(tuple(asked.get("words", "").split()), facets, asked.get("task", ""))


def _number(text: str) -> int:
    if not text.isdecimal():
        raise InputError(f"first must be a number from 0, found {text!r}")
    return int(text)


def _file(name: str) -> str:
    return (Path(__file__).parent / "page" / name).read_text(encoding="utf-8")
