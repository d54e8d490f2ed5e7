"""The Dockerfile cannot be built in the tests, but all that it names is there."""

from __future__ import annotations

import json
import re
import shlex
import tomllib
from pathlib import Path

import click
import typer
from packaging.specifiers import SpecifierSet

from tacit.cli.app import app

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
# Lines that go on, put together; comments left out.
TEXT = re.sub(r"(?m)^#.*\n", "", (ROOT / "Dockerfile").read_text("utf-8"))
STEPS = [line.split(" ", 1) for line in TEXT.replace("\\\n", " ").splitlines() if line]


def step(name: str) -> list[str]:
    return [rest for word, rest in STEPS if word == name]


def test_its_python_is_one_that_the_project_supports() -> None:
    version = re.fullmatch(r"PYTHON_IMAGE=python:(\d+\.\d+)-slim", step("ARG")[0])
    assert version is not None
    assert SpecifierSet(PROJECT["requires-python"]).contains(version[1])


def test_every_image_can_be_named_by_its_digest_and_the_operators_page_says_how() -> (
    None
):
    assert step("FROM") == ["${PYTHON_IMAGE}"]
    compose = (ROOT / "deploy" / "compose.yaml").read_text("utf-8")
    images = re.findall(r"(?m)^ *image: (\S+)", compose)
    assert sorted(images) == ["${CADDY_IMAGE:-caddy:2}", "tacit"]
    page = (ROOT / "docs" / "operators.md").read_text("utf-8")
    assert "--build-arg PYTHON_IMAGE=python:3.12-slim@sha256:" in page
    assert "CADDY_IMAGE=caddy:2@sha256:" in page


def test_what_it_copies_is_there_and_not_ignored() -> None:
    ignored = (ROOT / ".dockerignore").read_text("utf-8").splitlines()
    for copied in step("COPY"):
        *sources, _ = shlex.split(copied)
        for source in sources:
            assert (ROOT / source).exists(), source
            assert f"!{source}" in ignored, source


def test_what_it_installs_is_an_extra_with_pinned_versions() -> None:
    [installed] = step("RUN")
    [named] = re.findall(r"'\.\[(.*)\]'", installed)
    assert {*named.split(",")} <= PROJECT["optional-dependencies"].keys()
    assert installed.count("pip install") == installed.count("--constraint constr")


def test_its_command_is_one_of_ours() -> None:
    [program] = json.loads(step("ENTRYPOINT")[0])
    command, *options = json.loads(step("CMD")[0])
    assert program in PROJECT["scripts"]
    group = typer.main.get_command(app)
    found = group.commands[command]
    context = click.Context(found)
    parsed, rest, _ = found.make_parser(context).parse_args(options)
    assert (parsed, rest) == ({"out": "demo"}, [])
