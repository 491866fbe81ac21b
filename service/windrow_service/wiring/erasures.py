"""Build the services of erasures."""

from __future__ import annotations

from windrow_service.api.services import ErasureServices
from windrow_service.filters.limits import FilterLimits
from windrow_service.usecases.erasures.plan import PlanErasure
from windrow_service.usecases.snapshots.scans import ManifestReader
from windrow_service.wiring.adapters import Adapters


def open_erasures(adapters: Adapters, manifests: ManifestReader) -> ErasureServices:
    """Return the services of erasures."""
    limits = adapters.settings.limits
    return ErasureServices(
        plan=PlanErasure(
            snapshots=adapters.snapshots,
            manifests=manifests,
            # Separate from plans, which are quick.
            runner=adapters.threads("erasures"),
            filter_limits=FilterLimits(
                max_nodes=limits.max_filter_nodes, max_depth=limits.max_filter_depth
            ),
            max_decoded_bytes=limits.max_publish_decoded_bytes,
        )
    )
