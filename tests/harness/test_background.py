"""Work on an event loop in the background: begun anywhere, awaited or waited for, cancelled, ended."""

from __future__ import annotations

import asyncio
import threading

import pytest

from quintain.harness.background import Background


@pytest.fixture
def background():
    made = Background("test-background")
    yield made
    made.stop()


async def thread_name() -> str:
    return threading.current_thread().name


async def hang(began: threading.Event, ended: threading.Event) -> None:
    try:
        began.set()
        await asyncio.Event().wait()
    finally:
        ended.set()


def test_what_is_begun_runs_in_the_thread_of_that_name(background):
    assert background.start(thread_name()).result() == "test-background"


async def test_what_is_awaited_runs_there_too_also_when_asked_for_there(background):
    assert await background.there(background.there(thread_name())) == "test-background"


async def test_cancelling_here_cancels_there(background):
    began, ended = threading.Event(), threading.Event()
    here = asyncio.ensure_future(background.there(hang(began, ended)))
    await asyncio.to_thread(began.wait)
    here.cancel()
    with pytest.raises(asyncio.CancelledError):
        await here
    assert await asyncio.to_thread(ended.wait, 60)


def test_stop_cancels_what_is_under_way_and_ends_the_thread_and_a_later_use_begins_anew(background):
    began, ended = threading.Event(), threading.Event()
    work = background.start(hang(began, ended))
    began.wait()
    background.stop()
    assert work.cancelled()
    assert ended.is_set()
    assert "test-background" not in {one.name for one in threading.enumerate()}
    assert background.start(thread_name()).result() == "test-background"


def test_something_last_runs_in_the_loop_once_all_else_has_ended(background):
    began, ended, seen = threading.Event(), threading.Event(), []

    async def last() -> None:
        seen.append((await thread_name(), ended.is_set()))

    background.start(hang(began, ended))
    began.wait()
    background.stop(last)
    assert seen == [("test-background", True)]


def test_where_nothing_ran_stop_has_nothing_to_do_and_no_thread_was_started(background):
    background.stop()
    assert "test-background" not in {one.name for one in threading.enumerate()}
