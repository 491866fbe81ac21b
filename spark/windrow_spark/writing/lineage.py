"""Finding the columns of a DataFrame that may differ between attempts, from its plan."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from py4j.protocol import Py4JError
from pyspark.sql import DataFrame

from windrow_tables.executor.shipping import READER_NAME


@dataclass(frozen=True, slots=True)
class Unstable:
    """Why the values of a column may change.

    Attributes:
        reason: The reason, worded to follow the column's name.
        per_query: Whether the value changes only from one query to the next, like the current
            time: all attempts of one query see the same value.
    """

    reason: str
    per_query: bool = False


@dataclass(frozen=True, slots=True)
class Lineage:
    """What is known of a DataFrame's rows from its analysed plan.

    Attributes:
        unstable: The columns whose values may change when a task runs again, and why.
        is_repeatable: Whether every computation is known to give the same rows, except for values
            of the current time: they come from files or constants through stable steps only.
    """

    unstable: dict[str, Unstable]
    is_repeatable: bool


# By the number in Spark's expression id.
_Reasons = dict[int, Unstable]

# Stands for the choice of rows; the numbers of columns start at 0.
_ROWS = -1
_OTHER_ROWS = Unstable("each attempt may choose different rows")
_CHOOSERS = {"GlobalLimit", "LocalLimit", "Offset", "Sample", "Tail"}
# Sources that never change; other kinds of tables may change between two reads.
_FIXED = {"CTERelationRef", "LocalRelation", "OneRowRelation", "Range"}

# Files, and a snapshot of a table of ours, whose files may not change.
_STABLE_RELATIONS = {"HadoopFsRelation"}

_OPAQUE = "makes it, and Spark does not show how"
# Errors if a version of Spark lacks a method of a plan node, or its result has another form.
_UNANSWERED = (Py4JError, AttributeError, TypeError, ValueError)
_TIMES = {
    "CurDateExpressionBuilder",
    "CurrentBatchTimestamp",
    "CurrentDate",
    "CurrentTime",
    "CurrentTimestamp",
    "LocalTimestamp",
    "Now",
}
_CODE = {
    "PythonUDF",
    "ScalaUDF",
    "PythonUDAF",
    "ScalaAggregator",
    "HiveGenericUDF",
    "HiveSimpleUDF",
}
_SUBQUERIES = {"Exists", "LateralSubquery", "ListQuery", "ScalarSubquery"}
# The results of these do not depend on the order of rows, provided that sums are exact.
_ORDERLESS = {
    "Average",
    "BitAndAgg",
    "BitOrAgg",
    "BitXorAgg",
    "BoolAnd",
    "BoolOr",
    "Count",
    "CountIf",
    "Max",
    "Min",
    # Used by pivots, whose groups have only one row each at that point.
    "PivotFirst",
    "Sum",
}
_SUMS = {"Average", "Sum"}
_INEXACT = {"float", "double"}
# Over a sorted window, these give rows with equal sort values the same result.
_TIELESS = {"CumeDist", "DenseRank", "PercentRank", "Rank"}


def lineage_of(df: DataFrame) -> Lineage:
    """Return what is known about a DataFrame's rows.

    For single columns, sources are assumed to give the same values at every read. A column is
    unstable if it is made by code that Spark cannot look into, by an unknown plan node, or by one
    that another version of Spark describes differently.

    Args:
        df: A DataFrame of a classic session.
    """
    try:
        plan = df._jdf.queryExecution().analyzed()
        reasons = _plan_reasons(plan)
        unstable = {
            attribute.name(): reasons[number]
            for attribute in _items(plan.output())
            if (number := _id(attribute)) in reasons
        }
        # Includes columns that were dropped since: rows may have been chosen by them.
        same = all(reason.per_query for reason in reasons.values())
        return Lineage(unstable, is_repeatable=same and bool(plan.deterministic()))
    except _UNANSWERED:
        reason = Unstable("Spark does not show how it is computed")
        return Lineage(dict.fromkeys(df.columns, reason), is_repeatable=False)


def _plan_reasons(root: Any) -> _Reasons:
    """Walk a plan from its leaves up, without recursion, as plans built in loops are deep."""
    by_node: dict[int, _Reasons] = {}
    definitions: dict[int, list[Unstable | None]] = {}
    # In the order of the walk, so that each node has a lower number than its children.
    nodes: list[Any] = []
    parents: list[int] = []
    stack: list[tuple[Any, int]] = [(root, -1)]
    while stack:
        node, parent = stack.pop()
        number = len(nodes)
        nodes.append(node)
        parents.append(parent)
        # Common table expressions come last in this walk, so they are known first afterwards.
        stack += [(child, number) for child in _items(node.children())]
    children: list[list[int]] = [[] for _ in nodes]
    for number, parent in enumerate(parents):
        if parent >= 0:
            children[parent].append(number)
    for number in reversed(range(len(nodes))):
        below = [(nodes[child], by_node.pop(child)) for child in reversed(children[number])]
        by_node[number] = _node_reasons(nodes[number], below, definitions)
    return by_node[0]


def _node_reasons(
    node: Any,
    children: Sequence[tuple[Any, _Reasons]],
    definitions: dict[int, list[Unstable | None]],
) -> _Reasons:
    unstable: _Reasons = {}
    for _, reasons in children:
        unstable |= reasons
    kind = _kind(node)
    try:
        if _chooses_rows(node, kind, bool(children), unstable):
            unstable[_ROWS] = _OTHER_ROWS
        _add_node(unstable, node, kind, children, definitions)
    except _UNANSWERED:
        # Includes columns that it passes on, as it may change them in any way.
        _add_all(unstable, node.output(), Unstable(f"{kind} {_OPAQUE}"))
    return unstable


def _add_node(
    unstable: _Reasons,
    node: Any,
    kind: str,
    children: Sequence[tuple[Any, _Reasons]],
    definitions: dict[int, list[Unstable | None]],
) -> None:
    """Note the unstable columns that a node makes; those of its children are known."""
    if kind in ("Project", "Aggregate"):
        expressions = node.projectList() if kind == "Project" else node.aggregateExpressions()
        _add_named(unstable, expressions)
    elif kind == "Window":
        _add_named(unstable, node.windowExpressions())
    elif kind == "Generate":
        _add_all(unstable, node.generatorOutput(), _reason(node.generator(), unstable))
    elif kind == "Expand":
        for projection in _items(node.projections()):
            for attribute, expression in zip(
                _items(node.output()), _items(projection), strict=True
            ):
                _add(unstable, attribute, _reason(expression, unstable))
    elif kind in ("Union", "Intersect", "Except"):
        for child, reasons in children:
            for attribute, own in zip(_items(node.output()), _items(child.output()), strict=True):
                _add(unstable, attribute, reasons.get(_id(own)))
    elif kind == "Deduplicate":
        keys = {_id(key) for key in _items(node.keys())}
        for attribute in _items(node.output()):
            if _id(attribute) not in keys:
                _add(unstable, attribute, Unstable("it comes from whichever duplicate is first"))
    elif kind == "CTERelationDef":
        definitions[int(node.id())] = [unstable.get(_id(one)) for one in _items(node.output())]
    elif kind == "CTERelationRef":
        own_reasons = definitions.get(int(node.cteId()), [])
        for attribute, reason in zip(_items(node.output()), own_reasons, strict=False):
            _add(unstable, attribute, reason)
    elif kind == "InMemoryRelation":
        # Only an optimised plan has these; rows that are no longer cached are computed again.
        source = _source_of_cache(node)
        reasons = _plan_reasons(source)
        for attribute, own in zip(_items(node.output()), _items(source.output()), strict=True):
            _add(unstable, attribute, reasons.get(_id(own)))
    elif _is_own_reader(node):
        # Windrow's reader is stable, whatever Spark says about its input.
        unstable.clear()
    elif children:
        _refuse_new(unstable, node, kind, [child for child, _ in children])


def _chooses_rows(node: Any, kind: str, has_children: bool, unstable: _Reasons) -> bool:
    """Return whether a node may choose other rows when it runs again, whatever their values."""
    if kind in ("Filter", "Join"):
        return any(_reason(one, unstable) is not None for one in _items(node.expressions()))
    if kind == "LogicalRelation":
        return _kind(node.relation()) not in _STABLE_RELATIONS
    if kind == "LogicalRDD":
        # Only checkpoints are fixed; any other RDD may run code.
        return not bool(node.rdd().isCheckpointed())
    return kind in _CHOOSERS or not (has_children or kind in _FIXED)


def _refuse_new(unstable: _Reasons, node: Any, kind: str, children: Sequence[Any]) -> None:
    """Mark the columns that an unknown node makes as unstable."""
    inputs = {_id(attribute) for child in children for attribute in _items(child.output())}
    for attribute in _items(node.output()):
        if _id(attribute) not in inputs:
            _add(unstable, attribute, Unstable(f"{kind} {_OPAQUE}"))


def _source_of_cache(node: Any) -> Any:
    """Return the plan of rows that a session has cached."""
    builder = node.cacheBuilder()
    try:
        return builder.logicalPlan()
    except Py4JError:
        # Spark 3.5 keeps only the physical plan, which knows what it was made of.
        return builder.cachedPlan().logicalLink().get()


def _is_own_reader(node: Any) -> bool:
    """Return whether a node is Windrow's reader of a split plan, whose rows are always the same."""
    if not _kind(node).startswith(("MapInArrow", "PythonMapInArrow")):
        return False
    # The field that holds the function has different names in Spark 3.5 and 4.
    return any(
        _kind(expression) == "PythonUDF" and expression.name() == READER_NAME
        for expression in _items(node.expressions())
    )


def _add_named(unstable: _Reasons, expressions: Any) -> None:
    # Computed first, as an alias does not see others of its own list.
    pairs = [(one, _reason(one, unstable)) for one in _items(expressions)]
    for expression, reason in pairs:
        _add(unstable, expression, reason)


def _add_all(unstable: _Reasons, attributes: Any, reason: Unstable | None) -> None:
    for attribute in _items(attributes):
        _add(unstable, attribute, reason)


def _add(unstable: _Reasons, attribute: Any, reason: Unstable | None) -> None:
    number = _id(attribute)
    if reason is not None and (number not in unstable or unstable[number].per_query):
        unstable[number] = reason


def _reason(root: Any, unstable: Mapping[int, Unstable]) -> Unstable | None:
    """Return why the value of an expression may change; None if it never does.

    A reason that applies within a query takes precedence over one that applies between queries.
    """
    cause: Unstable | None = None
    stack = [root]
    while stack:
        expression = stack.pop()
        kind = _kind(expression)
        reason, known_below = _own_reason(expression, kind, unstable)
        if reason is not None and (cause is None or cause.per_query):
            cause = reason
        if not known_below:
            stack += _items(expression.children())
    return cause


def _own_reason(
    expression: Any, kind: str, unstable: Mapping[int, Unstable]
) -> tuple[Unstable | None, bool]:
    """Return why an expression itself is unstable, and whether its children need no check."""
    if kind == "AttributeReference":
        return unstable.get(_id(expression)), True
    if kind == "WindowExpression":
        return _window_reason(expression), False
    if kind == "AggregateExpression":
        return _aggregate_reason(expression.aggregateFunction()), False
    if kind in _TIMES:
        return Unstable(f"{_name(expression)} is the time of the query", per_query=True), True
    if kind in _CODE:
        return Unstable("a user-defined function makes it, which may differ each time"), True
    if kind in _SUBQUERIES:
        return _subquery_reason(expression), False
    # Only if no child is non-deterministic, so that the reason names the function at fault.
    if not expression.deterministic() and all(
        child.deterministic() for child in _items(expression.children())
    ):
        return Unstable(f"{_name(expression)} differs between attempts"), False
    return None, False


def _aggregate_reason(function: Any) -> Unstable | None:
    kind = _kind(function)
    if kind in _CODE:
        return None
    if kind not in _ORDERLESS:
        return Unstable(f"{_name(function)} may depend on the order of rows")
    if kind in _SUMS and any(
        child.dataType().typeName() in _INEXACT for child in _items(function.children())
    ):
        return Unstable(
            f"{_name(function)} of {_items(function.children())[0].dataType().typeName()} numbers "
            "differs in its last digits depending on the order of rows"
        )
    return None


def _window_reason(expression: Any) -> Unstable | None:
    function = expression.windowFunction()
    kind = _kind(function)
    if kind in _TIELESS:
        return None
    if kind == "AggregateExpression":
        # A frame of rows, not values: the order of rows with equal sort values is undefined.
        frame = expression.windowSpec().frameSpecification()
        if _kind(frame) == "SpecifiedWindowFrame" and _kind(frame.frameType()) == "RowFrame$":
            bounds = {_kind(frame.lower()), _kind(frame.upper())}
            if bounds != {"UnboundedPreceding$", "UnboundedFollowing$"}:
                return Unstable("a window over rows depends on their order, which ties leave open")
        return None
    return Unstable(f"{_name(function)} depends on the order of rows, which ties leave open")


def _subquery_reason(expression: Any) -> Unstable | None:
    plan = expression.plan()
    reasons = _plan_reasons(plan)
    for attribute in _items(plan.output()):
        if _id(attribute) in reasons:
            return reasons[_id(attribute)]
    return None


# --- the JVM's objects ------------------------------------------------------


def _items(sequence: Any) -> list[Any]:
    return list(_iterated(sequence))


def _iterated(sequence: Any) -> Iterator[Any]:
    iterator = sequence.iterator()
    while iterator.hasNext():
        yield iterator.next()


def _kind(thing: Any) -> str:
    return str(thing.getClass().getSimpleName())


def _name(expression: Any) -> str:
    return f"`{expression.prettyName().lower()}`"


def _id(attribute: Any) -> int:
    return int(attribute.exprId().id())
