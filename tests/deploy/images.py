"""The Dockerfile, parsed."""

from __future__ import annotations

import json

from tests.deploy.charts import ROOT

Stage = list[tuple[str, str]]


def stages() -> list[Stage]:
    """Return the instructions of each stage, FROM first, as pairs of keyword and arguments.

    Arguments of the build have their defaults.
    """
    text = "\n".join(
        line for line in (ROOT / "Dockerfile").read_text().splitlines() if line[:1] != "#"
    ).replace("\\\n", " ")
    stages: list[Stage] = []
    defaults: dict[str, str] = {}
    for line in filter(str.strip, text.splitlines()):
        instruction, _, words = line.partition(" ")
        if instruction == "ARG" and not stages:
            name, _, default = words.partition("=")
            defaults[name] = default
            continue
        if instruction == "FROM":
            stages.append([])
            for name, default in defaults.items():
                words = words.replace(f"${{{name}}}", default)
        stages[-1].append((instruction, " ".join(words.split())))
    return stages


def every(stage: Stage, instruction: str) -> list[str]:
    """Return the arguments of each such instruction of a stage."""
    return [words for name, words in stage if name == instruction]


def only(stage: Stage, instruction: str) -> str:
    """Return the arguments of the only such instruction of a stage."""
    (words,) = every(stage, instruction)
    return words


def environment() -> dict[str, str]:
    """Return the variables that the image sets, except PATH."""
    pairs = (pair.partition("=") for pair in only(stages()[-1], "ENV").split())
    return {name: value for name, _, value in pairs if name != "PATH"}


def entrypoint() -> list[str]:
    """Return the command that a container runs."""
    return [str(word) for word in json.loads(only(stages()[-1], "ENTRYPOINT"))]


def health_command() -> list[str]:
    """Return the command that checks whether a container is healthy."""
    command = only(stages()[-1], "HEALTHCHECK").partition("CMD ")[2]
    return [str(word) for word in json.loads(command)]
