"""The attempts to break out, against containers of a real engine, where one is installed and has the image for it."""

from __future__ import annotations

import shutil
import subprocess

import pytest
import pytest_asyncio

from harness.sandbox_attack import MIB
from harness.test_sandbox_attacks import ATTACKS, attempt, host, shared_loop
from quintain.harness.sandbox import Container

__all__ = ["host"]  # a fixture

IMAGE = "quintain-test"
MAKE = "`debootstrap --variant=minbase --include=python3 bookworm D`, `tar -C D -c . | podman import - quintain-test`"

HARMLESS = {
    "read the users": "they are the image's",
    "list the homes": "they are the image's",
    "list the kernel's objects": "engines show /sys, read-only",
    "shield itself from the memory killer": "the killer chooses within the container",
    "see other processes": "the container's: its warden",
    "kill everything": "the kernel says yes where it may kill none of several",
    "all of the file table": "bounded by the container's memory; emptying it takes longer than a call may",
}
"""What containers allow and bubblewrap does not: by name, why nothing comes of it."""


def engine() -> str | None:
    for name in ("docker", "podman"):
        look = [name, "image", "inspect", IMAGE]
        if shutil.which(name) and subprocess.run(look, capture_output=True, timeout=60).returncode == 0:
            return name
    return None


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def boxes():
    command = engine()
    if command is None:
        pytest.skip(f"no container engine with the image {IMAGE}; make it: {MAKE}")
    pair = tuple(Container(IMAGE, command=command, scratch_bytes=size * MIB) for size in (8, 64))
    yield pair
    for box in pair:
        await box.close()


@pytest.mark.slow
@shared_loop
@pytest.mark.parametrize("attack", ATTACKS, ids=lambda attack: attack.name)
async def test_an_attack_in_a_container_ends_as_a_typed_result_and_harms_nothing(attack, host, boxes):
    result, output, _ = await attempt(attack, host, boxes)
    if attack.name in HARMLESS:
        return
    assert result.ended in attack.ended, output[-500:]
    assert "REACHED" not in output
    assert attack.says in output
