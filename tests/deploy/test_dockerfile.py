"""The image: the Dockerfile copies everything it needs, and its command starts a coordinator.

Docker is not needed: the commands of the build run in a folder instead. As in the image, that
folder lacks files that are not copied, and packages that only the extras for tests install.
"""

from __future__ import annotations

import importlib.metadata
import json
import re
import signal
import subprocess
import sysconfig
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest
import tomlkit
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from tests.deploy.charts import ROOT, VALUES, coordinator, manifests
from tests.deploy.image_build import LOCKS, bare, built_environments, context
from tests.deploy.images import entrypoint, environment, every, health_command, only, stages
from tests.support.servers.coordinators import free_port
from windrow import __version__

# The extras in the image, as `make requirements` locks them.
EXTRAS = "service", "iceberg", "traces"
_TIMEOUT_S = 60.0


def _shipped() -> list[Requirement]:
    return [
        one
        for one in map(Requirement, importlib.metadata.requires("windrow-spark") or [])
        if one.marker is None or any(one.marker.evaluate({"extra": name}) for name in EXTRAS)
    ]


def _tools() -> list[Requirement]:
    project = tomlkit.parse((ROOT / "pyproject.toml").read_text())
    return [
        *map(Requirement, project["dependency-groups"]["image"]),
        *map(Requirement, project["build-system"]["requires"]),
    ]


# The locked files of a build, and the requirements that each must contain.
LOCKED = dict(zip(LOCKS, (_shipped, _tools), strict=True))


@dataclass(frozen=True, slots=True)
class Image:
    """The result of a build: virtual environments in a folder instead of `/opt`."""

    environments: Path
    # By default, the environment that is copied into the image.
    name: str = "windrow"

    @property
    def venv(self) -> Path:
        """The environment that commands run in."""
        return self.environments / self.name

    def run(self, *command: str, **environment: str) -> subprocess.CompletedProcess[str]:
        """Run a command as in the image, and return its outcome."""
        return subprocess.run(
            [self._found(command[0]), *command[1:]],
            env=bare() | environment,
            capture_output=True,
            text=True,
            check=False,
            timeout=_TIMEOUT_S,
        )

    @contextmanager
    def started(self, *command: str, **environment: str) -> Iterator[subprocess.Popen[bytes]]:
        """Start a command as in the image; kill it when the block ends."""
        process = subprocess.Popen(
            [self._found(command[0]), *command[1:]], env=bare() | environment
        )
        try:
            yield process
        finally:
            process.kill()
            process.wait()

    def _found(self, name: str) -> str:
        return str(self.venv / "bin" / name)


@pytest.fixture(scope="module")
def image() -> Image:
    """The environments that `make test` has built, built again if a file has changed since."""
    return Image(built_environments())


def test_the_dockerfile_passes_its_linter() -> None:
    done = subprocess.run(
        [Path(sysconfig.get_path("scripts")) / "hadolint", ROOT / "Dockerfile"],
        capture_output=True,
        text=True,
        check=False,
    )

    assert (done.returncode, done.stdout) == (0, "")


def test_the_build_context_holds_exactly_the_copied_files() -> None:
    copied = [word for words in every(stages()[0], "COPY") for word in words.split()[:-1]]
    included = context()

    # Docker always sends its own two files.
    assert {path.split("/")[0] for path in included} - {"Dockerfile", ".dockerignore"} == set(
        copied
    )
    assert not [path for path in included if "__pycache__" in path or "test" in path]
    assert all((ROOT / origin).exists() for origin in copied)


def test_both_stages_start_from_one_pinned_python() -> None:
    bases = {only(stage, "FROM").split()[0] for stage in stages()}

    (base,) = bases
    assert re.fullmatch(r"python:3\.\d+-slim-\w+(@sha256:[0-9a-f]{64})?", base)


@pytest.mark.parametrize("name", LOCKED)
def test_everything_that_a_build_installs_is_pinned_by_its_hash(name: str) -> None:
    text = (ROOT / name).read_text().replace("\\\n", " ")
    lines = [line for line in text.splitlines() if line and line[0] != "#"]
    locked: dict[str, list[str]] = {}
    for line in lines:
        found = re.match(r"([\w.-]+)(?:\[[\w,]+\])?==(\S+)", line)
        assert found is not None, line
        assert "--hash=sha256:" in line, line
        locked.setdefault(canonicalize_name(found[1]), []).append(found[2])

    wanted = LOCKED[name]()
    # If this fails, run `make requirements`.
    assert [
        str(one)
        for one in wanted
        if not any(one.specifier.contains(v) for v in locked.get(canonicalize_name(one.name), []))
    ] == []
    assert len(wanted) > 1
    installing = [words for words in every(stages()[0], "RUN") for words in words.split(" && ")]
    for command in installing:
        if " install " in command:
            assert {"--require-hashes", "--no-index"} & set(command.split()), command


def test_the_image_runs_as_a_numbered_user_that_is_not_root() -> None:
    user, _, group = only(stages()[-1], "USER").partition(":")

    assert (int(user), int(group)) == (10001, 10001)


def test_the_image_runs_commands_without_a_shell() -> None:
    assert entrypoint() == ["python", "-m", "windrow_service"]
    assert health_command()[0] == "python"


def test_the_image_and_the_chart_agree() -> None:
    load = coordinator(manifests(VALUES[0]))

    assert load.container["ports"][0]["containerPort"] == int(only(stages()[-1], "EXPOSE"))
    assert environment()["WINDROW_PORT"] == only(stages()[-1], "EXPOSE")
    assert load.spec["securityContext"]["runAsUser"] == 10001
    assert environment()["WINDROW_STATE_DIR"] == "/var/lib/windrow"
    # The command must be that of the image.
    assert not {"command", "args"} & load.container.keys()


def test_the_copied_files_install_into_a_fresh_environment(image: Image) -> None:
    done = image.run("windrow", "--version")

    assert (done.returncode, done.stdout) == (0, f"windrow {__version__}\n"), done.stderr


@pytest.mark.nightly
def test_the_image_has_every_module_of_the_coordinator_and_no_test_tools(
    image: Image,
) -> None:
    done = image.run("python", str(ROOT / "tests/programs/image_modules.py"))

    assert (done.returncode, done.stdout) == (0, "[]\n"), done.stderr


def test_the_image_has_the_guide(image: Image) -> None:
    (package,) = image.venv.glob("lib/python*/site-packages/windrow_service")

    assert "Windrow" in (package / "guide" / "index.html").read_text()


def test_the_image_lists_exactly_the_installed_packages_with_licences(image: Image) -> None:
    # Read with a library of the build tools, which the image does not have.
    code = (
        "import json, sys; from cyclonedx.model.bom import Bom\n"
        "listed = Bom.from_json(json.load(open(sys.argv[1]))).components\n"
        "print(json.dumps([[one.name, one.version, len(one.licenses)] for one in listed]))\n"
    )
    tools = Image(image.environments, "tools")
    (installed,) = image.venv.glob("lib/python3.*/site-packages")

    done = tools.run("python", "-c", code, str(image.venv / "sbom.cdx.json"))

    assert done.returncode == 0, done.stderr
    listed = json.loads(done.stdout)
    assert sorted((name, version) for name, version, _ in listed) == sorted(
        (one.name, one.version) for one in importlib.metadata.distributions(path=[str(installed)])
    )
    # Its wheel names none; its repository has that of Apache.
    assert [name for name, _, licences in listed if not licences] == ["hdfs-native"]
    assert "windrow-spark" in {name for name, _, _ in listed}


def test_the_image_serves_reports_healthy_and_stops_on_request(
    image: Image, tmp_path: Path
) -> None:
    settings = environment() | {
        "WINDROW_HOST": "127.0.0.1",
        "WINDROW_PORT": str(free_port()),
        "WINDROW_STATE_DIR": str(tmp_path / "state"),
        "WINDROW_ALLOWED_LOCATIONS": str(tmp_path),
    }
    health = health_command()

    assert image.run(*health, **settings).returncode != 0
    with image.started(*entrypoint(), **settings) as process:
        deadline = time.monotonic() + _TIMEOUT_S
        while image.run(*health, **settings).returncode != 0:
            assert process.poll() is None, "the coordinator ended: see its log"
            assert time.monotonic() < deadline, "the coordinator did not start in time"
            # Each check is a process of its own, which slows down the coordinator that starts.
            time.sleep(0.3)
        process.send_signal(signal.SIGTERM)
        assert process.wait(_TIMEOUT_S) in (0, -signal.SIGTERM)
    assert image.run(*health, **settings).returncode != 0
