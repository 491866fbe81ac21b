"""The wire models: what travels between client and coordinator, as JSON.

They stand once, here; the service imports this package and nothing else of the client.
Requests refuse unknown fields. Sizes are bytes unless a name says otherwise.
"""

from windrow.models.base import (
    TABLE_NAME_PATTERN,
    Answer,
    ByteSize,
    ColumnName,
    Request,
    Scalar,
    TableName,
)
from windrow.models.explain import (
    GroupReason,
    Locality,
    PlanExplanation,
    PrunedFiles,
    StrategyFigures,
)
from windrow.models.filters import (
    Between,
    Comparison,
    Filter,
    FilterTree,
    In,
    IsNull,
    Junction,
    Not,
    StartsWith,
)
from windrow.models.plans import (
    GroupPage,
    Plan,
    PlanOptions,
    PlanRequest,
    PlanSummary,
    Split,
    SplitGroup,
)
from windrow.models.service import (
    Health,
    Limits,
    Problem,
    ServiceConfig,
)
from windrow.models.tables import (
    BucketSpec,
    Column,
    RefreshProgress,
    RefreshStatus,
    SnapshotInfo,
    SnapshotPage,
    SortColumn,
    TableDefinition,
    TableFormat,
    TableInfo,
    TablePage,
)

__all__ = [
    "TABLE_NAME_PATTERN",
    "Answer",
    "Between",
    "BucketSpec",
    "ByteSize",
    "Column",
    "ColumnName",
    "Comparison",
    "Filter",
    "FilterTree",
    "GroupPage",
    "GroupReason",
    "Health",
    "In",
    "IsNull",
    "Junction",
    "Limits",
    "Locality",
    "Not",
    "Plan",
    "PlanExplanation",
    "PlanOptions",
    "PlanRequest",
    "PlanSummary",
    "Problem",
    "PrunedFiles",
    "RefreshProgress",
    "RefreshStatus",
    "Request",
    "Scalar",
    "ServiceConfig",
    "SnapshotInfo",
    "SnapshotPage",
    "SortColumn",
    "Split",
    "SplitGroup",
    "StartsWith",
    "StrategyFigures",
    "TableDefinition",
    "TableFormat",
    "TableInfo",
    "TableName",
    "TablePage",
]
