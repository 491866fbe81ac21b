"""What the system refuses is never taken for damage, and no remedy costs data."""

from __future__ import annotations

import errno
import os
import re

import pytest

from windrow.files.access import why_inaccessible
from windrow.files.errors import UnreadableFootersError

CAUSES = {
    errno.EACCES: "right to read",
    errno.EPERM: "right to read",
    errno.EIO: "disk or the mount",
    errno.ESTALE: "mount",
    errno.EMFILE: "limit of open files",
    errno.ENFILE: "limit of open files",
}


@pytest.mark.parametrize("number", CAUSES, ids=errno.errorcode.get)
def test_each_cause_has_its_own_remedy(number: int) -> None:
    reason = why_inaccessible(OSError(number, os.strerror(number)))
    assert reason.startswith(os.strerror(number))
    assert CAUSES[number] in reason
    text = str(UnreadableFootersError((("a.parquet", reason),)))
    assert reason in text
    assert not re.search("remove|rewrite|delete", text)


def test_other_causes_are_told_as_the_system_tells_them() -> None:
    assert why_inaccessible(OSError(errno.EISDIR, "Is a directory")) == "Is a directory"
    assert why_inaccessible(OSError("no number")) == "no number"
