"""Tables on Azure are registered, refreshed, planned and read, and errors say what to do."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import obstore
import pytest

import windrow
from tests.support.servers import embedded
from tests.support.servers.azure import Azure, azure_server
from tests.support.tables import hive
from windrow_calls.errors import ProblemError
from windrow_tables.executor.errors import StaleFileError, VanishedFileError

pytestmark = [pytest.mark.slow, pytest.mark.nightly]

IDS = list(range(60))


@pytest.fixture(scope="module")
def azure(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Azure]:
    with azure_server(tmp_path_factory.mktemp("azurite")) as server:
        yield server


@pytest.fixture
def container(azure: Azure, name: str) -> str:
    """The name of an empty container."""
    container = name.replace(".", "-").replace("_", "-")
    azure.create(container)
    return container


@pytest.fixture
def location(azure: Azure, container: str, tmp_path: Path) -> str:
    """The location of a table of three days, two files each, with a hidden file."""
    folder = hive.write_events(tmp_path / "events")
    (folder / "_temporary").mkdir()
    (folder / "_temporary" / "x.parquet").write_bytes(b"not yet")
    azure.upload(folder, container, "lake/events ü")
    return f"abfss://{container}@devstoreaccount1.dfs.core.windows.net/lake/events ü"


@pytest.fixture
def client(location: str, tmp_path: Path) -> Iterator[windrow.Client]:
    allowed = (location.rpartition("/lake/")[0], "abfss://missing@devstoreaccount1.dfs.core.net")
    with embedded.client(tmp_path / "state", allowed_locations=allowed) as client:
        client.register_table("sales.events", location.replace("abfss:", "abfs:"))
        yield client


def test_a_table_is_refreshed_planned_and_read(client: windrow.Client, location: str) -> None:
    client.refresh("sales.events")

    rows = client.scan("sales.events").to_table()

    assert client.table("sales.events").definition.location == location
    assert sorted(rows["id"].to_pylist()) == IDS
    assert client.plan("sales.events", filter="ds = '2026-11-02' AND id < 25").summary.files_planned
    assert not client.refresh("sales.events", full=True).changed


def test_a_blob_that_was_replaced_or_deleted_fails_the_read_by_its_name(
    azure: Azure, client: windrow.Client, container: str
) -> None:
    client.refresh("sales.events")
    store, key = azure.store(container), "lake/events ü/ds=2026-11-01/part-00000.parquet"
    # Even with the same bytes, in the same second.
    obstore.put(store, key, bytes(obstore.get(store, key).bytes()))
    with pytest.raises(StaleFileError, match="part-00000"):
        client.scan("sales.events").to_table()
    obstore.delete(store, key)
    # The emulator looks at the condition first, and Azure says that the blob is gone.
    with pytest.raises((StaleFileError, VanishedFileError), match="part-00000"):
        client.scan("sales.events").to_table()


def test_a_missing_container_is_named(client: windrow.Client) -> None:
    client.register_table("sales.missing", "abfss://missing@devstoreaccount1.dfs.core.net/t")
    with pytest.raises(ProblemError, match="container that does not exist"):
        client.refresh("sales.missing")
