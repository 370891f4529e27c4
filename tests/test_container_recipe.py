"""The container recipe against the package it installs; no container engine is asked."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement

ROOT = Path(__file__).parents[1]
RECIPE = (ROOT / "Containerfile").read_text(encoding="utf-8")
TABLE = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
EXTRAS = TABLE["project"]["optional-dependencies"]
COPIED = [name for line in re.findall(r"^COPY (.*) \S+$", RECIPE, re.M) for name in line.split()]


def test_what_is_copied_is_all_that_a_wheel_is_made_of():
    built = TABLE["tool"]["hatch"]["build"]["targets"]["wheel"]
    needed = {"pyproject.toml", TABLE["project"]["readme"], *TABLE["project"]["license-files"], *built["force-include"]}
    needed |= {path.split("/")[0] for path in built["packages"]}
    assert set(COPIED) == needed
    assert all((ROOT / name).exists() for name in COPIED)


@pytest.mark.parametrize("extra", re.search(r"/src\[(.*)\]", RECIPE)[1].split(","))
def test_every_extra_it_installs_exists(extra):
    assert extra in EXTRAS


def test_the_torch_of_its_base_image_is_new_enough():
    (version,) = re.findall(r"^FROM \S+/pytorch:(\d+\.\d+\.\d+)-", RECIPE, re.M)
    (torch,) = (one for one in map(Requirement, EXTRAS["train"]) if one.name == "torch")
    assert torch.specifier.contains(version)


def test_it_starts_the_command_of_the_package():
    (command,) = re.findall(r'^ENTRYPOINT \["(\S+)"\]$', RECIPE, re.M)
    assert command in TABLE["project"]["scripts"]
