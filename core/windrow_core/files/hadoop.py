"""Files on HDFS, through `hdfs-native`: a client that needs neither a JVM nor Hadoop.

Name services and Kerberos are configured by `core-site.xml` and `hdfs-site.xml` in
`HADOOP_CONF_DIR`.
"""

from __future__ import annotations

import os
import re
import socket
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

import pyarrow as pa

from windrow_core.files.permissions import Access, AclEntry
from windrow_core.files.positions import PositionedFile
from windrow_core.files.process_wide import kept_by_process
from windrow_core.files.status import FileStatus

_PORT = 8020
# A NameNode without another is given up after seconds; by default, after minutes.
_PATIENCE = {"dfs.client.failover.max.attempts": "2"}
_SERVER_ERROR = re.compile(r'RPCError\("[\w.$]*?(\w+)", "(.*?)(?:\\n|"\)|$)', re.DOTALL)
# Of Kerberos: the library's own words.
_CREDENTIALS_ERROR = re.compile(r'GSSAPIError\(.*, "(?:.*?(?:information|inaccessible): )?(.*)"\)')
_NO_CREDENTIALS = "give this process a ticket (kinit, KRB5CCNAME) or a keytab (KRB5_CLIENT_KTNAME)"
_TOKENS = "HADOOP_TOKEN_FILE_LOCATION"
# What the client says without the reason of a server.
_HINTS = {
    "Failed to load libgssapi_krb": "install it (libgssapi-krb5-2 of Debian, krb5-libs of Red Hat)",
    "RPC listener disconnected": "the NameNode has ended the connection; if it requires Kerberos, "
    "say so in core-site.xml (hadoop.security.authentication)",
    "All DataNodes failed": "let this process reach the DataNodes, and copy "
    "dfs.data.transfer.protection from the cluster's hdfs-site.xml",
}
_LETTERS = (("r", 4), ("w", 2), ("x", 1))
_QUOTA = "raise the quota (hdfs dfsadmin), or make room below it"
_REMEDIES = {
    "NSQuotaExceededException": _QUOTA,
    "DSQuotaExceededException": _QUOTA,
    "AccessControlException": "give its user the right to it",
    "SafeModeException": "wait until the NameNode has left safe mode",
}


class HdfsFile(PositionedFile):
    """A file that can be read at any position.

    Args:
        uri: The file.
        reader: The client's reader of it.
    """

    def __init__(self, uri: str, reader: Any) -> None:
        super().__init__(len(reader))
        self._uri = uri
        self._reader = reader

    def read(self, size: int | None = -1) -> bytes:
        """See `io.RawIOBase.read`."""
        begin, end = self.at, self.end_of(size)
        # The client ends the process's thread, with its own trace, if it is to read beyond the end.
        if begin >= end:
            return b""
        with _as_os_errors(self._uri):
            content: bytes = self._reader.read_range(begin, end - begin)
        self.at += len(content)
        return content


def status_of(uri: str) -> FileStatus:
    """Return the state of a file."""
    client, path = _located(uri)
    with _as_os_errors(uri):
        return _status(client.get_file_info(path))


@contextmanager
def opened(uri: str) -> Iterator[Any]:
    """Open a file for reading at any position."""
    client, path = _located(uri)
    with _as_os_errors(uri):
        reader = client.read(path)
    with pa.PythonFile(HdfsFile(uri, reader), mode="r") as file:
        yield file


def entries_of(uri: str, *, recursive: bool) -> tuple[list[str], list[tuple[str, FileStatus]]]:
    """Return the folders and files in a folder, by their paths in it.

    Args:
        uri: The folder.
        recursive: Whether those at any depth are wanted.

    Raises:
        FileNotFoundError: There is no such folder.
        NotADirectoryError: It is a file.
        OSError: It cannot be listed.
    """
    client, path = _located(uri)
    path = path.rstrip("/") or "/"
    above = len(path.rstrip("/")) + 1
    folders: list[str] = []
    files: list[tuple[str, FileStatus]] = []
    with _as_os_errors(uri):
        for entry in client.list_status(path, recursive):
            if entry.path == path and not entry.isdir:
                raise NotADirectoryError(f"{uri} is a file")
            if entry.isdir:
                folders.append(entry.path[above:])
            else:
                files.append((entry.path[above:], _status(entry)))
    return folders, files


def create(uri: str, pieces: Iterable[bytes], access: Access | None = None) -> None:
    """Make a file, and the folders above it.

    Args:
        uri: The file.
        pieces: Its content.
        access: Who may use it; by default, whoever its folder and this user allow.

    Raises:
        FileExistsError: There is one.
        OSError: It cannot be made.
    """
    client, path = _located(uri)
    with _as_os_errors(uri):
        # Nobody else is to read it before.
        mode = {} if access is None else {"write_options": _created_alone()}
        with client.create(path, **mode) as file:
            for piece in pieces:
                file.write(piece)
    if access is not None:
        give(uri, access)


def make_folder(uri: str) -> None:
    """Make a folder, and those above it, unless there is one."""
    client, path = _located(uri)
    with _as_os_errors(uri):
        client.mkdirs(path, create_parent=True)


def rename(uri: str, target: str) -> None:
    """Move a file to a path that is free, in a folder that exists.

    Raises:
        FileNotFoundError: There is no such file, or no such folder.
        FileExistsError: The path is not free.
        OSError: It cannot be moved.
    """
    client, path = _located(uri)
    with _as_os_errors(uri):
        client.rename(path, _located(target)[1])


def remove(uri: str, *, recursive: bool = False) -> None:
    """Remove a file, or a folder, if it exists.

    Args:
        uri: The file or folder.
        recursive: Whether a folder may hold anything.

    Raises:
        FolderNotEmptyError: The folder holds something.
        OSError: It cannot be removed.
    """
    client, path = _located(uri)
    with _as_os_errors(uri):
        client.delete(path, recursive)


def access_of(uri: str) -> Access:
    """Return the access to a file."""
    client, path = _located(uri)
    with _as_os_errors(uri):
        status = client.get_file_info(path)
        mode = status.permission & 0o1777
        try:
            acl = client.get_acl_status(path).entries
        except RuntimeError as error:
            # The NameNode has them turned off.
            if "AclException" not in str(error):
                raise
            acl = []
    entries = [
        AclEntry("own_group", None, _bits(one.permissions))
        if one.name is None
        else AclEntry(one.type, one.name, _bits(one.permissions))
        for one in acl
        if one.scope == "access"
    ]
    return Access(status.owner, status.group, mode, tuple(entries))


def give(uri: str, access: Access) -> None:
    """Give a file its access, or a narrower one where this user may not set its owner or group."""
    client, path = _located(uri)
    for owner, group in ((None, access.group), (access.owner, None)):
        if owner is not None or group is not None:
            with suppress(PermissionError), _as_os_errors(uri):
                client.set_owner(path, owner, group)
    with _as_os_errors(uri):
        status = client.get_file_info(path)
        if access.group is not None and status.group != access.group:
            access = access.without_group()
        if status.owner != access.owner:
            access = access.without_owner(4)
        if access.acl:
            client.set_acl(path, _acl_of(access))
        else:
            with suppress(RuntimeError):
                client.remove_acl(path)
            client.set_permission(path, access.mode)


def _created_alone() -> Any:
    """Return options that open a new file to nobody but its owner."""
    import hdfs_native

    return hdfs_native.WriteOptions(permission=0o600)


def _acl_of(access: Access) -> list[Any]:
    import hdfs_native

    def entry(kind: Any, bits: int, name: str | None = None) -> Any:
        text: Any = "".join(letter if bits & bit else "-" for letter, bit in _LETTERS)
        return hdfs_native.AclEntry(kind, "access", text, name)

    return [
        entry("user", access.mode >> 6 & 7),
        *(
            entry("group" if one.kind == "own_group" else one.kind, one.bits, one.name)
            for one in access.acl
        ),
        entry("mask", access.mode >> 3 & 7),
        entry("other", access.mode & 7),
    ]


def _bits(permissions: str) -> int:
    return sum(bit for letter, bit in _LETTERS if letter in permissions)


class FolderNotEmptyError(OSError):
    """A folder that is to be removed holds something."""


def _status(info: Any) -> FileStatus:
    return FileStatus(info.length, info.modification_time * 1_000_000)


def _located(uri: str) -> tuple[Any, str]:
    """Return the client of a URI's file system, and the path in it."""
    scheme, _, rest = uri.partition("://")
    if scheme != "hdfs":
        raise OSError(f"{scheme}:// is not supported by this version of Windrow")
    authority, _, path = rest.partition("/")
    return kept_by_process(f"hdfs://{authority}", lambda: _connected(authority)), f"/{path}"


def _connected(authority: str) -> Any:
    try:
        import hdfs_native
    except ModuleNotFoundError as error:
        raise OSError(
            f"{error}: install hdfs-native for the Python that reads hdfs:// here and on executors"
        ) from error
    host, _, port = authority.partition(":")
    if not port:
        try:
            # A name service of `hdfs-site.xml`.
            return hdfs_native.Client(f"hdfs://{host}")
        except RuntimeError:
            port = str(_PORT)
    # The client would look for a host that does not exist until its patience ends.
    try:
        addresses = socket.getaddrinfo(host, int(port))
    except OSError as error:
        raise OSError(f"there is no host {host!r} here: {error}") from error
    if _TOKENS in os.environ:
        # Tokens name a NameNode by its address, unless it is one of a name service.
        host = next((str(one[4][0]) for one in addresses if one[0] == socket.AF_INET), host)
    with _as_os_errors(f"hdfs://{authority}"):
        return hdfs_native.Client(f"hdfs://{host}:{port}", _PATIENCE)


@contextmanager
def _as_os_errors(uri: str) -> Iterator[None]:
    """Turn errors of the client, some of which hold traces of the NameNode, into those of files."""
    try:
        yield
    except (FileNotFoundError, FileExistsError, NotADirectoryError) as error:
        raise type(error)(f"{uri}: {_first_line(error)}") from None
    except OSError as error:
        raise _of_client(uri, _first_line(error)) from None
    except RuntimeError as error:
        answer = _SERVER_ERROR.search(str(error))
        if answer is None:
            raise _of_client(uri, _first_line(error)) from None
        remedy = _REMEDIES.get(answer[1])
        text = f"{uri}: {answer[1]}: {answer[2]}"
        raise _KINDS.get(answer[1], OSError)(f"{text}; {remedy}" if remedy else text) from None


def _of_client(uri: str, text: str) -> OSError:
    """Return an error that no server has stated."""
    refusal = _CREDENTIALS_ERROR.search(text)
    if refusal is not None:
        return PermissionError(f"{uri}: Kerberos: {refusal[1]}; {_NO_CREDENTIALS}")
    cause = next((cause for cause in _HINTS if cause in text), None)
    return OSError(f"{uri}: {text}" if cause is None else f"{uri}: {cause}: {_HINTS[cause]}")


def _first_line(error: Exception) -> str:
    return str(error).strip().partition("\n")[0]


# By the names of the NameNode's exceptions.
_KINDS = {
    "AccessControlException": PermissionError,
    "PathIsNotEmptyDirectoryException": FolderNotEmptyError,
}
