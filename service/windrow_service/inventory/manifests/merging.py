"""Which manifests of a snapshot are worth writing anew, so that it keeps few and narrow ones.

Manifests of like size are merged once there are many of them, as a log-structured merge tree
does (O'Neil et al. 1996; size-tiered compaction): each row is written again about once for
each 16-fold growth. One merge at a time bounds what one delta has to write.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Sequence

from windrow_service.inventory.manifests.manifests import Manifest

# So many small manifests of one tier are merged, and each tier's hold so many times more.
_FAN_IN = 16
# More full manifests than these over one path are cut anew, side by side.
_MAX_OVERLAP = 8


def worth_merging(manifests: Sequence[Manifest], manifest_files: int) -> list[int]:
    """Return the positions of manifests to write anew as one set of files; often none.

    Args:
        manifests: Those of a snapshot.
        manifest_files: How many files a manifest may hold.
    """
    return (
        _full_tier(manifests, manifest_files)
        or _pile(manifests, manifest_files)
        or _worn(manifests)
    )


def is_worn(file_count: int, removed_count: int) -> bool:
    """Tell whether so much is gone that what is left is worth writing anew."""
    return 4 * removed_count > file_count + removed_count


def _full_tier(manifests: Sequence[Manifest], manifest_files: int) -> list[int]:
    tiers: dict[int, list[int]] = {}
    for at, manifest in enumerate(manifests):
        if 2 * manifest.file_count < manifest_files:
            tiers.setdefault((manifest.file_count.bit_length() - 1) // 4, []).append(at)
    for _, tier in sorted(tiers.items()):
        files = sum(manifests[at].file_count for at in tier)
        if len(tier) >= _FAN_IN or files >= manifest_files:
            return tier
    return []


def _pile(manifests: Sequence[Manifest], manifest_files: int) -> list[int]:
    """Return the full manifests over the path that most of them lie over, if they are many."""
    full = [
        at for at, manifest in enumerate(manifests) if 2 * manifest.file_count >= manifest_files
    ]
    firsts = sorted(manifests[at].first_path for at in full)
    lasts = sorted(manifests[at].last_path for at in full)
    depths = [bisect_right(firsts, path) - bisect_left(lasts, path) for path in firsts]
    if max(depths, default=0) <= _MAX_OVERLAP:
        return []
    path = firsts[depths.index(max(depths))]
    return [at for at in full if manifests[at].first_path <= path <= manifests[at].last_path]


def _worn(manifests: Sequence[Manifest]) -> list[int]:
    for at, manifest in enumerate(manifests):
        if is_worn(manifest.file_count, len(manifest.removed)):
            return [at]
    return []
