"""What the system refuses is never taken for damage, and no remedy costs data."""

from __future__ import annotations

import errno
import os
import re

import pytest

from windrow_core.files.access import is_of_system, remedy_in, why_inaccessible, why_unwritable
from windrow_core.files.errors import UnreadableFootersError

HARMFUL = re.compile(r"remove|rewrite|delete|damage|restore|corrupt")
READING = {
    errno.EACCES: "right to read",
    errno.EPERM: "right to read",
    errno.EIO: "disk or the mount",
    errno.ESTALE: "mount",
    errno.ETIMEDOUT: "file server",
    errno.EMFILE: "limit of open files",
    errno.ENFILE: "limit of open files",
    errno.ENOSPC: "make room",
    errno.EDQUOT: "quota",
    errno.ELOOP: "symbolic links",
    errno.ENAMETOOLONG: "shorter",
    errno.EISDIR: "folder is in the file's place",
}
WRITING = READING | {
    errno.EACCES: "right to write",
    errno.EPERM: "right to write",
    errno.EROFS: "for writing",
}


@pytest.mark.parametrize("number", READING, ids=errno.errorcode.get)
def test_each_cause_of_a_failed_read_has_its_own_remedy(number: int) -> None:
    reason = why_inaccessible(OSError(number, os.strerror(number)))
    assert reason.startswith(f"{os.strerror(number)}: ")
    assert READING[number] in reason
    text = str(UnreadableFootersError((("a.parquet", reason),)))
    assert reason in text
    assert not HARMFUL.search(text)


@pytest.mark.parametrize("number", WRITING, ids=errno.errorcode.get)
def test_each_cause_of_a_failed_write_has_its_own_remedy(number: int) -> None:
    reason = why_unwritable(OSError(number, os.strerror(number), "/t/a"))
    assert reason.startswith(f"'/t/a': {os.strerror(number)}: ")
    assert WRITING[number] in reason


@pytest.mark.parametrize("number", sorted(errno.errorcode.keys() - {errno.EXDEV}))
def test_no_remedy_for_a_refusal_costs_data(number: int) -> None:
    error = OSError(number, os.strerror(number))
    assert is_of_system(error)
    for reason in (why_inaccessible(error), why_unwritable(error)):
        assert reason.startswith(f"{os.strerror(number)}: ")
        remedy = reason.removeprefix(f"{os.strerror(number)}: ")
        assert remedy
        assert not HARMFUL.search(remedy)


def test_the_words_of_open_beneath_name_their_own_remedy() -> None:
    assert why_inaccessible(OSError(errno.EXDEV, "put it there")) == "put it there"


def test_an_error_of_arrow_about_the_content_is_not_of_the_system() -> None:
    error = OSError("Couldn't deserialize thrift")
    assert not is_of_system(error)
    assert why_inaccessible(error) == "Couldn't deserialize thrift"


def test_refusals_are_told_from_the_text_of_other_programs() -> None:
    assert "make room" in remedy_in("java.io.IOException: No space left on device")
    assert "right" in remedy_in("java.io.FileNotFoundException: /t/a (Permission denied)")
    assert remedy_in("Expected magic number at tail, but found [0, 0, 0, 0]") == ""
