"""Delta tables."""

from __future__ import annotations

from windrow_core.kinds.logged import logged_kind

DELTA = logged_kind("delta", "Delta's OPTIMIZE", "DELETE FROM with Delta, then VACUUM")
