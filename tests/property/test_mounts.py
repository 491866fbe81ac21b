"""A path has one mount, whichever there are."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.laws import examples
from windrow_service.inventory.errors import InvalidLocationError
from windrow_service.inventory.listing import mounts as mounts_of
from windrow_service.inventory.listing.locations import canonical_location

NAMES = st.text("ab%ü ", min_size=1, max_size=2).filter(lambda name: name.strip() == name)
PATHS = st.lists(NAMES, max_size=3).map(lambda names: "".join(f"/{name}" for name in names))


@examples(50)
@given(mounts=st.dictionaries(PATHS.filter(bool), st.integers(0, 3), max_size=4), path=PATHS)
def test_a_path_has_one_mount_or_is_refused(mounts: dict[str, int], path: str) -> None:
    # A mount that holds another is refused by Hadoop itself.
    mounts = {
        mount: target
        for mount, target in mounts.items()
        if not any(mount.startswith(f"{other}/") for other in mounts)
    }
    above = [mount for mount in mounts if f"{path}/".startswith(f"{mount}/")]
    below = [mount for mount in mounts if mount.startswith(f"{path}/")]
    table = "fs.viewfs.mounttable.m.link."
    settings = {f"{table}{mount}": f"hdfs://h{at}" for mount, at in mounts.items()}

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(f"{mounts_of.__name__}._settings", lambda _: settings)
        if above:
            (mount,) = above
            expected = f"hdfs://h{mounts[mount]}{path.removeprefix(mount)}"
            assert canonical_location(f"viewfs://m{path}") == expected
        else:
            with pytest.raises(InvalidLocationError, match="holds mounts" if below else "no mount"):
                canonical_location(f"viewfs://m{path}")
