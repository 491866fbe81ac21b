"""Paths in Iceberg's metadata: below the table's location, or in other allowed folders."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

import pyarrow as pa
import pyarrow.compute as pc

from windrow_core.files.arrays import flat
from windrow_core.files.limits import MAX_FIELDS
from windrow_core.files.places import place_of
from windrow_core.files.remote import read_whole_file
from windrow_core.files.table_paths import absolute_path
from windrow_service.iceberg.errors import IcebergMetadataError
from windrow_service.inventory.errors import InvalidLocationError
from windrow_service.inventory.listing.locations import canonical_location, lies_under

_UNFIT = re.compile(r"[\x00-\x1f\x7f-\x9f\ud800-\udfff]")
_NAME = r"[^/]*$"
_LOCAL, _S3 = re.compile("^file:/+"), re.compile("^s3[an]:")


@dataclass(frozen=True, slots=True)
class TableFolders:
    """A table's location, and the other folders that its files may be in.

    Attributes:
        location: Canonical location of the table.
        roots: Canonical folders and URIs.
        max_fields: Most fields that the table may have.
    """

    location: str
    roots: tuple[str, ...]
    max_fields: int = MAX_FIELDS
    _folders: dict[str, str] = field(default_factory=dict)

    def relative(self, paths: pa.Array, said_by: str) -> pa.Array:
        """Return the paths of files: relative to the table's location, or absolute beside it.

        Args:
            paths: Paths as the metadata states them.
            said_by: The file that states them, for messages.
        """
        # There are few folders.
        heads = flat(pc.replace_substring_regex(paths, _NAME, "")).dictionary_encode()
        folders = [self._folder(head, said_by) for head in heads.dictionary.to_pylist()]
        names = flat(pc.replace_substring_regex(paths, r"^.*/", ""))
        wrong = pc.match_substring_regex(names, r"^\.{0,2}$|[\x00-\x1f\x7f]")
        if pc.any(wrong).as_py():
            raise self._leads_elsewhere(paths[pc.index(wrong, True).as_py()].as_py(), said_by)
        prefixes = pa.array(folders, pa.string()).take(heads.indices)
        return flat(pc.binary_join_element_wise(prefixes, names, ""))

    def alias_in(self, paths: pa.Array) -> str | None:
        """Return a folder that paths spell differently from Windrow; None if there is none.

        Position delete files name data files in the spelling of their writer.
        """
        for head in pc.unique(pc.replace_substring_regex(paths, _NAME, "")).to_pylist():
            home = absolute_path(self.location, self._folder(head, self.location).rstrip("/"))
            if _S3.sub("s3:", _LOCAL.sub("/", head)).rstrip("/") != home:
                return str(head)
        return None

    def absolute(self, path: str, said_by: str) -> str:
        """Return one path as an absolute path or URI, after checking that it may be read."""
        relative_path: str = self.relative(pa.array([path], pa.string()), said_by)[0].as_py()
        return absolute_path(self.location, relative_path)

    def require_home(self, location: str, said_by: str) -> None:
        """Require that metadata names the table's own location as that of the table."""
        home = self.absolute(f"{location.rstrip('/')}/metadata", said_by)
        if home != f"{self.location.rstrip('/')}/metadata":
            raise IcebergMetadataError(
                said_by,
                f"states that the table is at {location!r}, not at {self.location!r}: correct the "
                "table's location",
            )

    def _folder(self, head: str, said_by: str) -> str:
        """Return a folder as a prefix of the names in it: empty, or with `/` at its end."""
        if head not in self._folders:
            self._folders[head] = self._found(head, said_by)
        return self._folders[head]

    def _found(self, head: str, said_by: str) -> str:
        if _UNFIT.search(head) or any(part in (".", "..") for part in head.split("/")):
            raise self._leads_elsewhere(head, said_by)
        try:
            home = canonical_location(head.rstrip("/") or "/")
        except InvalidLocationError as error:
            raise self._leads_elsewhere(head, said_by) from error
        if lies_under(home, self.location):
            below = home[len(self.location.rstrip("/")) :].strip("/")
            return f"{below}/" if below else ""
        if not any(lies_under(home, prefix) for prefix in self.roots):
            raise self._leads_elsewhere(head, said_by)
        return f"{home.rstrip('/')}/"

    def _leads_elsewhere(self, path: str, said_by: str) -> IcebergMetadataError:
        return IcebergMetadataError(
            said_by,
            f"names a file in {path[:200]!r}, which is neither below the table's location "
            f"{self.location!r} nor in a folder that the coordinator may read: correct the table's "
            "location, or allow the folder (WINDROW_ALLOWED_LOCATIONS)",
        )


def read_bounded(path: str, max_bytes: int) -> bytes:
    """Return the content of a metadata file."""
    try:
        content = read_whole_file(path, max_bytes + 1)
    except FileNotFoundError as error:
        raise IcebergMetadataError(
            path, "is missing: restore it, or expire the snapshots that need it"
        ) from error
    except OSError as error:
        raise IcebergMetadataError(path, place_of(path).why_unreadable(error)) from error
    if len(content) > max_bytes:
        raise IcebergMetadataError(
            path, f"has more than {max_bytes:,} bytes: expire snapshots, and rewrite manifests"
        )
    return content
