"""A file that is made of others is open to nobody to whom one of them was closed."""

from __future__ import annotations

import json
import os
import stat
import struct
import tempfile
import traceback
from collections.abc import Callable, Sequence
from functools import reduce
from operator import and_
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.laws import examples
from windrow_core.files.permissions import access_of, give, look_alike, narrowest
from windrow_tables.merging.task import Job, Outcome, merge_pieces

as_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files to others")
_ACL, _DEFAULT_ACL = "system.posix_acl_access", "system.posix_acl_default"
_USERS, _GROUPS = (2001, 2002, 2003), (3001, 3002)
_MODES = st.integers(0, 0o777)


class Shape(NamedTuple):
    """The permissions of one file."""

    owner: int
    group: int
    mode: int
    named: tuple[tuple[str, int, int], ...]


class Person(NamedTuple):
    """A user, and the groups that the user is in, the first one first."""

    user: int
    groups: tuple[int, ...]


SHAPES = st.builds(
    Shape,
    st.sampled_from(_USERS),
    st.sampled_from(_GROUPS),
    _MODES,
    st.just(())
    | st.lists(
        st.tuples(st.just("user"), st.sampled_from(_USERS), st.integers(0, 7))
        | st.tuples(st.just("group"), st.sampled_from(_GROUPS), st.integers(0, 7)),
        max_size=3,
        unique_by=lambda entry: entry[:2],
    ).map(tuple),
)
PEOPLE = [
    Person(user, groups)
    for user in (*_USERS, 2004)
    for groups in ((3003,), (3001,), (3002, 3001), (3003, 3002))
]


def acl_of(shape: Shape, mask: int) -> bytes:
    """Return an ACL as the kernel takes it."""
    number = {"user": 2, "group": 8}
    entries = [
        (1, shape.mode >> 6 & 7, 2**32 - 1),
        *sorted((number[kind], bits, name) for kind, name, bits in shape.named if kind == "user"),
        (4, shape.mode >> 3 & 7, 2**32 - 1),
        *sorted((number[kind], bits, name) for kind, name, bits in shape.named if kind == "group"),
        (16, mask, 2**32 - 1),
        (32, shape.mode & 7, 2**32 - 1),
    ]
    return struct.pack("<I", 2) + b"".join(
        struct.pack("<HHI", kind, bits, name)
        for kind, bits, name in sorted(entries, key=lambda entry: (entry[0], entry[2]))
    )


def make(path: Path, shape: Shape, mask: int) -> str:
    path.touch(0o600)
    os.chown(path, shape.owner, shape.group)
    os.chmod(path, shape.mode)
    if shape.named:
        os.setxattr(path, _ACL, acl_of(shape, mask))
    return str(path)


def forked(work: Callable[[], Any]) -> Any:
    """Return what work returns in a process of its own, which may change its user."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            answer = json.dumps(work()).encode()
        except BaseException:
            answer = json.dumps({"error": traceback.format_exc()}).encode()
        with os.fdopen(writing, "wb") as pipe:
            pipe.write(answer)
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading, "rb") as pipe:
        answer = json.loads(pipe.read())
    os.waitpid(child, 0)
    assert not (isinstance(answer, dict) and "error" in answer), answer["error"]
    return answer


def become(person: Person) -> None:
    """Be another user from now on, who can become root again."""
    os.setgroups(person.groups[1:])
    os.setresgid(person.groups[0], person.groups[0], 0)
    os.setresuid(person.user, person.user, 0)


def rights(folder: Path, names: Sequence[str]) -> list[list[int]]:
    """Return what the kernel lets each person do with each file: 4, 2 and 1, added up."""

    def asked() -> list[list[int]]:
        # The folders above are open to root alone.
        os.chdir(folder)
        answers = []
        for person in PEOPLE:
            become(person)
            answers.append(
                [sum(bit for bit in (4, 2, 1) if os.access(name, bit)) for name in names]
            )
            os.setresuid(0, 0, 0)
            os.setresgid(0, 0, 0)
        return answers

    answer: list[list[int]] = forked(asked)
    return answer


@as_root
@examples(80)
@given(
    shapes=st.lists(SHAPES, min_size=1, max_size=3) | SHAPES.map(lambda one: [one, one]),
    masks=st.lists(st.integers(0, 7), min_size=3, max_size=3),
    worker=st.none() | st.sampled_from(PEOPLE),
)
def test_nobody_may_do_more_with_a_new_file_than_with_each_of_the_old_ones(
    shapes: list[Shape], masks: list[int], worker: Person | None
) -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        folder.chmod(0o777)
        old = [make(folder / f"{at}", one, masks[at]) for at, one in enumerate(shapes)]
        access = narrowest([access_of(path) for path in old])

        def given_access() -> None:
            os.chdir(folder)
            if worker is not None:
                become(worker)
            os.close(os.open("new", os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))
            give("new", access)

        forked(given_access)

        maker = 0 if worker is None else worker.user
        asked = rights(folder, ["new", *(Path(path).name for path in old)])
        for person, (new, *others) in zip(PEOPLE, asked, strict=True):
            # Whoever owns a file may change what its owner may do with it.
            if person.user != (folder / "new").stat().st_uid or person.user != maker:
                assert new & ~reduce(and_, others) == 0, (person, others)
        if worker is None and len({access_of(path) for path in old}) == 1:
            assert access_of(str(folder / "new")) == access_of(old[0])
            assert all(new == others[0] for new, *others in asked)


@examples(60)
@given(modes=st.lists(_MODES.map(lambda mode: mode | 0o400), min_size=2, max_size=4))
def test_merged_files_are_as_open_as_the_least_open_of_their_sources(modes: list[int]) -> None:
    with tempfile.TemporaryDirectory() as name:
        (table := Path(name) / "table").mkdir()
        (staging := Path(name) / "staging").mkdir()
        for at, mode in enumerate(modes):
            pq.write_table(pa.table({"id": [at]}), table / f"{at}")
            (table / f"{at}").chmod(mode)
        job = Job(str(table), str(staging), [], 2**20, 1.0, 2**24)

        answers = merge_pieces(job, [(0, "", [f"{at}" for at in range(len(modes))])])

        ((path, _, _),) = Outcome(*answers[0]).new_files
        status = (staging / path).stat()
        assert stat.S_IMODE(status.st_mode) == reduce(and_, modes)
        assert status.st_gid == (table / "0").stat().st_gid


@as_root
@examples(40)
@given(shape=SHAPES, mask=st.integers(0, 7), passed_on=SHAPES, above=SHAPES)
def test_a_folder_in_place_of_another_has_its_permissions_and_passes_on_the_same(
    shape: Shape, mask: int, passed_on: Shape, above: Shape
) -> None:
    with tempfile.TemporaryDirectory() as name:
        (Path(name) / "above").mkdir()
        (model := Path(name) / "model").mkdir()
        if above.named:
            os.setxattr(Path(name) / "above", _DEFAULT_ACL, acl_of(above, 7))
        (folder := Path(name) / "above" / "folder").mkdir()
        os.chown(model, shape.owner, shape.group)
        os.chmod(model, shape.mode | stat.S_ISGID)
        if shape.named:
            os.setxattr(model, _ACL, acl_of(shape, mask))
        if passed_on.named:
            os.setxattr(model, _DEFAULT_ACL, acl_of(passed_on, mask))

        look_alike(str(model), str(folder))

        def all_of(path: Path) -> object:
            names = sorted(set(os.listxattr(path)) & {_ACL, _DEFAULT_ACL})
            status = path.stat()
            whose = status.st_uid, status.st_gid, stat.S_IMODE(status.st_mode)
            return whose, [(one, os.getxattr(path, one)) for one in names]

        assert all_of(folder) == all_of(model)
