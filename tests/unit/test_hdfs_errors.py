"""What the client of HDFS says becomes an error with its cause and the remedy."""

from __future__ import annotations

import sys
import types
from pathlib import Path

import pytest

from windrow_core.files import hadoop

GIVE = "; give this process a ticket (kinit, KRB5CCNAME) or a keytab (KRB5_CLIENT_KTNAME)"


def gss_error(routine: str, text: str) -> str:
    return (
        f'GSSAPIError(GssMajorCodes {{ raw: "0x00070000", routine_error: "{routine}" }}, 2529639053, '
        f'"{text}")'
    )


@pytest.mark.parametrize(
    ("error", "kind", "text"),
    [
        (
            RuntimeError(
                gss_error(
                    "GSS_S_NO_CRED",
                    "No credentials were supplied, or the credentials were unavailable or "
                    "inaccessible: No Kerberos credentials available (default cache: FILE:/tmp/x)",
                )
            ),
            PermissionError,
            "Kerberos: No Kerberos credentials available (default cache: FILE:/tmp/x)" + GIVE,
        ),
        (
            RuntimeError(
                gss_error(
                    "GSS_S_FAILURE",
                    "Unspecified GSS failure.  Minor code may provide more information: Ticket "
                    "expired",
                )
            ),
            PermissionError,
            "Kerberos: Ticket expired" + GIVE,
        ),
        (
            OSError("RPC listener disconnected"),
            OSError,
            "RPC listener disconnected: the NameNode has ended the connection; if it requires "
            "Kerberos, say so in core-site.xml (hadoop.security.authentication)",
        ),
        (
            RuntimeError(
                'DataTransferError("All DataNodes failed: [DatanodeInfoProto { id: … }]")'
            ),
            OSError,
            "All DataNodes failed: let this process reach the DataNodes, and copy "
            "dfs.data.transfer.protection from the cluster's hdfs-site.xml",
        ),
        (
            RuntimeError(
                'RPCError("org.apache.hadoop.hdfs.server.namenode.SafeModeException", "Name node '
                'is in safe mode.\\nat …")'
            ),
            OSError,
            "SafeModeException: Name node is in safe mode.; wait until the NameNode has left safe "
            "mode",
        ),
        (
            OSError("Connection refused (os error 111)"),
            OSError,
            "Connection refused (os error 111)",
        ),
    ],
)
def test_an_error_of_the_client_states_its_cause_and_the_remedy(
    error: Exception, kind: type[OSError], text: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Client:
        def __init__(self, *_: object) -> None:
            pass

        def get_file_info(self, path: str) -> None:
            raise error

    monkeypatch.setattr(hadoop, "kept_by_process", lambda _, make: make())
    monkeypatch.setitem(sys.modules, "hdfs_native", types.SimpleNamespace(Client=Client))

    with pytest.raises(OSError, match="hdfs://nn") as caught:
        hadoop.status_of("hdfs://nn/t")

    assert (type(caught.value), str(caught.value)) == (kind, f"hdfs://nn/t: {text}")


@pytest.mark.parametrize("with_tokens", [True, False])
def test_tokens_are_looked_up_by_the_address_of_a_namenode(
    with_tokens: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    addresses: list[str] = []

    class Client:
        def __init__(self, uri: str, settings: object = None) -> None:
            addresses.append(uri)

        def get_file_info(self, path: str) -> None:
            raise OSError

    monkeypatch.setattr(hadoop, "kept_by_process", lambda _, make: make())
    monkeypatch.setitem(sys.modules, "hdfs_native", types.SimpleNamespace(Client=Client))
    monkeypatch.delenv("HADOOP_TOKEN_FILE_LOCATION", raising=False)
    if with_tokens:
        monkeypatch.setenv("HADOOP_TOKEN_FILE_LOCATION", str(tmp_path / "tokens"))

    with pytest.raises(OSError, match="localhost"):
        hadoop.status_of("hdfs://localhost:9000/t")

    assert addresses == ["hdfs://127.0.0.1:9000" if with_tokens else "hdfs://localhost:9000"]
