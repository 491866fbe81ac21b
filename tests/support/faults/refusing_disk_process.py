"""A file system that passes everything on to a folder, except what it is told to refuse.

It speaks the kernel's FUSE protocol, so that the errors are real for every program. Arguments: the
folder, the file with the refusals, the descriptor of `/dev/fuse`, and the folder that it is mounted
on. It needs the standard library only, so that it starts quickly. When its standard input ends, as
its starter has ended in whatever way, it unmounts itself and ends.
"""

from __future__ import annotations

import ctypes
import errno
import json
import os
import re
import stat
import struct
import sys
import threading
from collections.abc import Callable, Mapping

_REQUEST = struct.Struct("<IIQQIIIHH")
_ANSWER = struct.Struct("<IiQ")
_ATTRIBUTES = struct.Struct("<QQQQQQIIIIIIIIII")
_SET = struct.Struct("<IIQQQQQQIIIIIIII")
_MAX_REQUEST_BYTES = 2**20 + 4096
# The reads and writes of a program reach this process one by one, with its errors unchanged.
_DIRECT_IO = 1

_libc = ctypes.CDLL(None, use_errno=True)


class RefusingFolder:
    """Answers the kernel's requests."""

    def __init__(self, folder: str, refusals: str, device: int) -> None:
        self._refusals = refusals
        self._device = device
        self._paths = {1: folder}
        self._ids = {folder: 1}
        self._root = folder
        self._names: Mapping[int, tuple[str, Callable[[int, bytes], bytes]]] = {
            1: ("stat", self._lookup),
            3: ("stat", self._attributes),
            4: ("chmod", self._set),
            5: ("readlink", lambda node, _: os.fsencode(os.readlink(self._paths[node]))),
            9: ("mkdir", self._make_folder),
            10: ("unlink", self._unlink),
            11: ("rmdir", self._remove_folder),
            12: ("rename", lambda node, data: self._rename(node, data[:8], 0, data[8:])),
            13: ("link", self._link),
            14: ("open", self._open),
            15: ("read", self._read),
            16: ("write", self._write),
            17: ("statfs", self._figures),
            18: ("close", self._close),
            20: ("fsync", lambda _, __: b""),
            25: ("close", lambda _, __: b""),
            26: ("", self._begin),
            27: ("list", lambda node, _: self._opened_folder(node)),
            28: ("list", self._list),
            29: ("close", lambda _, __: b""),
            30: ("fsync", lambda _, __: b""),
            35: ("create", self._create),
            45: (
                "rename",
                lambda node, data: self._rename(
                    node, data[:8], struct.unpack_from("<I", data, 8)[0], data[16:]
                ),
            ),
        }

    def serve(self) -> None:
        """Answer requests until the file system is unmounted."""
        while True:
            try:
                request = os.read(self._device, _MAX_REQUEST_BYTES)
            except OSError as error:
                if error.errno in (errno.EINTR, errno.ENOENT):
                    continue
                return
            _, code, unique, node, *_ = _REQUEST.unpack_from(request)
            if code in (2, 36, 42):  # forgotten and interrupted requests get no answer
                continue
            number, content = 0, b""
            try:
                content = self._answer(code, node, request[_REQUEST.size :])
            except OSError as error:
                number = error.errno or errno.EIO
            answer = _ANSWER.pack(_ANSWER.size + len(content), -number, unique) + content
            try:
                os.write(self._device, answer)
            except FileNotFoundError:
                # The program has gone.
                continue

    def _answer(self, code: int, node: int, data: bytes) -> bytes:
        if code not in self._names:
            raise OSError(errno.ENOSYS, "")
        operation, method = self._names[code]
        self._refuse(code, operation, node, data)
        return method(node, data)

    def _refuse(self, code: int, operation: str, node: int, data: bytes) -> None:
        """Raise the error that is wanted for an operation on a path."""
        with open(self._refusals, "rb") as file:
            refusals = json.load(file)
        path = self._paths.get(node, "")
        if code in (1, 9, 10, 11, 13, 35):
            name_at = {9: 8, 13: 8, 35: 16}.get(code, 0)
            path = f"{path}/{os.fsdecode(data[name_at:].split(bytes(1))[0])}"
        offset = struct.unpack_from("<Q", data, 8)[0] if operation in ("read", "write") else 0
        for kind, where, number, below in refusals:
            if kind != operation or re.search(where, path) is None:
                continue
            if below is None or offset < below:
                raise OSError(number, "")

    def _begin(self, _: int, data: bytes) -> bytes:
        major, _minor, ahead = struct.unpack_from("<III", data)
        fields = (major, 31, ahead, 0, 16, 12, 2**17, 1, 32, 0, 0)
        return struct.pack("<IIIIHHIIHHI", *fields) + bytes(28)

    def _child(self, node: int, name: bytes) -> str:
        return f"{self._paths[node]}/{os.fsdecode(name)}"

    def _id_of(self, path: str) -> int:
        if path not in self._ids:
            self._ids[path] = len(self._paths) + 1
            self._paths[self._ids[path]] = path
        return self._ids[path]

    def _entry(self, path: str) -> bytes:
        status = os.lstat(path)
        return struct.pack("<QQQQII", self._id_of(path), 0, 0, 0, 0, 0) + _packed(status)

    def _lookup(self, node: int, data: bytes) -> bytes:
        return self._entry(self._child(node, data.rstrip(b"\0")))

    def _attributes(self, node: int, _: bytes) -> bytes:
        return struct.pack("<QII", 0, 0, 0) + _packed(os.lstat(self._paths[node]))

    def _set(self, node: int, data: bytes) -> bytes:
        valid, _, _, size, _, atime, mtime, _, a_ns, m_ns, _, mode, _, uid, gid, _ = _SET.unpack(
            data[: _SET.size]
        )
        path = self._paths[node]
        if valid & 1:
            os.chmod(path, stat.S_IMODE(mode))
        if valid & 6:
            os.chown(path, uid if valid & 2 else -1, gid if valid & 4 else -1)
        if valid & 8:
            os.truncate(path, size)
        if valid & 48:
            status = os.stat(path)
            times = (
                atime * 10**9 + a_ns if valid & 16 else status.st_atime_ns,
                mtime * 10**9 + m_ns if valid & 32 else status.st_mtime_ns,
            )
            os.utime(path, ns=times)
        return self._attributes(node, b"")

    def _make_folder(self, node: int, data: bytes) -> bytes:
        mode, _umask = struct.unpack_from("<II", data)
        path = self._child(node, data[8:].rstrip(b"\0"))
        os.mkdir(path, mode)
        return self._entry(path)

    def _unlink(self, node: int, data: bytes) -> bytes:
        path = self._child(node, data.rstrip(b"\0"))
        os.unlink(path)
        self._forget(path)
        return b""

    def _remove_folder(self, node: int, data: bytes) -> bytes:
        path = self._child(node, data.rstrip(b"\0"))
        os.rmdir(path)
        self._forget(path)
        return b""

    def _forget(self, path: str) -> None:
        # The node stays, for programs that have it open; a new file gets another.
        self._ids.pop(path, None)

    def _rename(self, node: int, onto: bytes, flags: int, data: bytes) -> bytes:
        old, new = data.split(b"\0")[:2]
        source = self._child(node, old)
        target = self._child(struct.unpack("<Q", onto)[0], new)
        at_cwd = -100
        arguments = (at_cwd, os.fsencode(source), at_cwd, os.fsencode(target), flags)
        if _libc.renameat2(*arguments):
            raise OSError(ctypes.get_errno(), "")
        sources = {one: id_ for one, id_ in self._ids.items() if _lies_below(source, one)}
        targets = {one: id_ for one, id_ in self._ids.items() if _lies_below(target, one)}
        for path in (*sources, *targets):
            del self._ids[path]
        for path, id_ in sources.items():
            self._place(id_, target + path[len(source) :])
        if flags & 2:
            for path, id_ in targets.items():
                self._place(id_, source + path[len(target) :])
        return b""

    def _place(self, id_: int, path: str) -> None:
        self._paths[id_] = path
        self._ids[path] = id_

    def _link(self, node: int, data: bytes) -> bytes:
        path = self._child(node, data[8:].rstrip(b"\0"))
        os.link(self._paths[struct.unpack_from("<Q", data)[0]], path, follow_symlinks=False)
        return self._entry(path)

    def _open(self, node: int, data: bytes) -> bytes:
        flags = struct.unpack_from("<I", data)[0]
        descriptor = os.open(self._paths[node], flags & ~os.O_NOFOLLOW)
        return struct.pack("<QII", descriptor, _DIRECT_IO, 0)

    def _opened_folder(self, node: int) -> bytes:
        os.scandir(self._paths[node]).close()
        return struct.pack("<QII", 0, 0, 0)

    def _create(self, node: int, data: bytes) -> bytes:
        flags, mode, *_ = struct.unpack_from("<IIII", data)
        path = self._child(node, data[16:].rstrip(b"\0"))
        descriptor = os.open(path, flags | os.O_CREAT, mode)
        return self._entry(path) + struct.pack("<QII", descriptor, _DIRECT_IO, 0)

    def _read(self, _: int, data: bytes) -> bytes:
        descriptor, offset, size = struct.unpack_from("<QQI", data)
        return os.pread(descriptor, size, offset)

    def _write(self, _: int, data: bytes) -> bytes:
        descriptor, offset, size = struct.unpack_from("<QQI", data)
        return struct.pack("<II", os.pwrite(descriptor, data[40 : 40 + size], offset), 0)

    def _close(self, _: int, data: bytes) -> bytes:
        os.close(struct.unpack_from("<Q", data)[0])
        return b""

    def _figures(self, _: int, __: bytes) -> bytes:
        status = os.statvfs(self._root)
        counts = (status.f_blocks, status.f_bfree, status.f_bavail, status.f_files, status.f_ffree)
        return struct.pack("<QQQQQIIII", *counts, status.f_bsize, 255, status.f_frsize, 0) + bytes(
            24
        )

    def _list(self, node: int, data: bytes) -> bytes:
        _, offset, size = struct.unpack_from("<QQI", data)
        content = b""
        names = sorted(os.listdir(self._paths[node]))
        for at, name in enumerate(names[offset:], offset + 1):
            status = os.lstat(f"{self._paths[node]}/{name}")
            encoded = os.fsencode(name)
            kind = stat.S_IFMT(status.st_mode) >> 12
            entry = struct.pack("<QQII", status.st_ino, at, len(encoded), kind) + encoded
            entry += bytes(-len(entry) % 8)
            if len(content) + len(entry) > size:
                break
            content += entry
        return content


def _packed(status: os.stat_result) -> bytes:
    times = (status.st_atime_ns, status.st_mtime_ns, status.st_ctime_ns)
    return _ATTRIBUTES.pack(
        status.st_ino,
        status.st_size,
        status.st_blocks,
        *(time // 10**9 for time in times),
        *(time % 10**9 for time in times),
        status.st_mode,
        status.st_nlink,
        status.st_uid,
        status.st_gid,
        0,
        4096,
        0,
    )


def _lies_below(folder: str, path: str) -> bool:
    return path == folder or path.startswith(f"{folder}/")


def _unmount_at_end_of_input(folder: str) -> None:
    sys.stdin.buffer.read()
    lazily = 2
    _libc.umount2(os.fsencode(folder), lazily)
    # Files that are still open would keep the kernel asking.
    os._exit(0)


if __name__ == "__main__":
    os.umask(0)
    threading.Thread(target=_unmount_at_end_of_input, args=sys.argv[4:], daemon=True).start()
    RefusingFolder(sys.argv[1], sys.argv[2], int(sys.argv[3])).serve()
