"""Which columns of a DataFrame have the same value at every attempt, from its analysed plan."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from py4j.protocol import Py4JError
from pyspark.sql import DataFrame

from windrow.spark.executor.shipping import READER_NAME


@dataclass(frozen=True, slots=True)
class Unstable:
    """Why a column may have another value.

    Attributes:
        reason: In words that follow the column's name.
        per_query: Whether the value changes only from one query to the next, as the time does:
            all attempts of one query see the same.
    """

    reason: str
    per_query: bool = False


@dataclass(frozen=True, slots=True)
class Lineage:
    """What the analysed plan of a DataFrame tells of its rows.

    Attributes:
        unstable: The columns that may have other values when a task runs again, and why.
        is_repeatable: Whether it is known that the same rows come whenever it is computed, but
            for the time: made from files or constants by nothing that may differ.
    """

    unstable: dict[str, Unstable]
    is_repeatable: bool


# By the number of Spark's expression id.
_Reasons = dict[int, Unstable]

# Stands for the choice of rows among the numbers of columns, which begin at 0.
_ROWS = -1
_OTHER_ROWS = Unstable("other rows may be chosen at each attempt")
_CHOOSERS = {"GlobalLimit", "LocalLimit", "Offset", "Sample", "Tail"}
# Sources that are the same at a second look; tables of other kinds may have changed by then.
_FIXED = {"CTERelationRef", "LocalRelation", "OneRowRelation", "Range"}

_OPAQUE = "makes it, of which Spark does not tell how"
# What it comes to when a version of Spark has not the method that is asked of a node, or has
# another answer than expected.
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
# The result of these depends on the rows alone, in whatever order they come, if sums are exact.
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
    # What a pivot makes of groups that have one row each by then.
    "PivotFirst",
    "Sum",
}
_SUMS = {"Average", "Sum"}
_INEXACT = {"float", "double"}
# Over a window sorted by values, these are the same for rows that are alike in them.
_TIELESS = {"CumeDist", "DenseRank", "PercentRank", "Rank"}


def lineage_of(df: DataFrame) -> Lineage:
    """Return what is known of a DataFrame's rows.

    For single columns, a source is taken as read the same each time. What is made by code that Spark cannot look
    into, by plan nodes that are not known here, and by those that another version of Spark
    describes in another way, is unstable.

    Args:
        df: Of a classic session.
    """
    try:
        plan = df._jdf.queryExecution().analyzed()
        reasons = _plan_reasons(plan)
        unstable = {
            attribute.name(): reasons[number]
            for attribute in _items(plan.output())
            if (number := _id(attribute)) in reasons
        }
        # Also what columns were made of that are no longer there: rows may have been chosen by it.
        same = all(reason.per_query for reason in reasons.values())
        return Lineage(unstable, is_repeatable=same and bool(plan.deterministic()))
    except _UNANSWERED:
        reason = Unstable("Spark does not tell how it is made")
        return Lineage(dict.fromkeys(df.columns, reason), is_repeatable=False)


def _plan_reasons(root: Any) -> _Reasons:
    """Walk a plan from its leaves up; without recursion, as plans of loops are deep."""
    by_node: dict[int, _Reasons] = {}
    definitions: dict[int, list[Unstable | None]] = {}
    # In the order in which they are met, so that a node has a lower number than its children.
    nodes: list[Any] = []
    parents: list[int] = []
    stack: list[tuple[Any, int]] = [(root, -1)]
    while stack:
        node, parent = stack.pop()
        number = len(nodes)
        nodes.append(node)
        parents.append(parent)
        # Common table expressions are met last, and so are known first.
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
    known: _Reasons = {}
    for _, reasons in children:
        known |= reasons
    kind = _kind(node)
    try:
        if _chooses_rows(node, kind, bool(children), known):
            known[_ROWS] = _OTHER_ROWS
        _add_node(known, node, kind, children, definitions)
    except _UNANSWERED:
        # Also what it passes on, as it may do anything to it.
        _add_all(known, node.output(), Unstable(f"{kind} {_OPAQUE}"))
    return known


def _add_node(
    known: _Reasons,
    node: Any,
    kind: str,
    children: Sequence[tuple[Any, _Reasons]],
    definitions: dict[int, list[Unstable | None]],
) -> None:
    """Note what a node makes that may differ; what its children make is known."""
    if kind in ("Project", "Aggregate"):
        made = node.projectList() if kind == "Project" else node.aggregateExpressions()
        _add_named(known, made)
    elif kind == "Window":
        _add_named(known, node.windowExpressions())
    elif kind == "Generate":
        _add_all(known, node.generatorOutput(), _reason(node.generator(), known))
    elif kind == "Expand":
        for projection in _items(node.projections()):
            for attribute, expression in zip(
                _items(node.output()), _items(projection), strict=True
            ):
                _add(known, attribute, _reason(expression, known))
    elif kind in ("Union", "Intersect", "Except"):
        for child, reasons in children:
            for attribute, own in zip(_items(node.output()), _items(child.output()), strict=True):
                _add(known, attribute, reasons.get(_id(own)))
    elif kind == "Deduplicate":
        keys = {_id(key) for key in _items(node.keys())}
        for attribute in _items(node.output()):
            if _id(attribute) not in keys:
                _add(known, attribute, Unstable("it is that of whichever duplicate came first"))
    elif kind == "CTERelationDef":
        definitions[int(node.id())] = [known.get(_id(one)) for one in _items(node.output())]
    elif kind == "CTERelationRef":
        defined = definitions.get(int(node.cteId()), [])
        for attribute, reason in zip(_items(node.output()), defined, strict=False):
            _add(known, attribute, reason)
    elif _is_own_reader(node):
        # What it is told to read is Windrow's own, whatever Spark makes of that.
        known.clear()
    elif children:
        _refuse_new(known, node, kind, [child for child, _ in children])


def _chooses_rows(node: Any, kind: str, has_children: bool, known: _Reasons) -> bool:
    """Tell whether the rows of a node may be others at a second look, whatever they hold."""
    if kind in ("Filter", "Join"):
        return any(_reason(one, known) is not None for one in _items(node.expressions()))
    if kind == "LogicalRelation":
        return _kind(node.relation()) != "HadoopFsRelation"
    if kind == "LogicalRDD":
        # Of a checkpoint; any other may run code.
        return not bool(node.rdd().isCheckpointed())
    return kind in _CHOOSERS or not (has_children or kind in _FIXED)


def _refuse_new(known: _Reasons, node: Any, kind: str, children: Sequence[Any]) -> None:
    """Note of columns that an unknown node makes that nothing is known of them."""
    passed = {_id(attribute) for child in children for attribute in _items(child.output())}
    for attribute in _items(node.output()):
        if _id(attribute) not in passed:
            _add(known, attribute, Unstable(f"{kind} {_OPAQUE}"))


def _is_own_reader(node: Any) -> bool:
    """Tell whether a node reads files as a split plan says, whose rows are always the same."""
    if not _kind(node).startswith(("MapInArrow", "PythonMapInArrow")):
        return False
    # What holds the function has another name on Spark 3.5 than on 4.
    return any(
        _kind(expression) == "PythonUDF" and expression.name() == READER_NAME
        for expression in _items(node.expressions())
    )


def _add_named(known: _Reasons, expressions: Any) -> None:
    # An alias may not see others of its own list.
    made = [(one, _reason(one, known)) for one in _items(expressions)]
    for expression, reason in made:
        _add(known, expression, reason)


def _add_all(known: _Reasons, attributes: Any, reason: Unstable | None) -> None:
    for attribute in _items(attributes):
        _add(known, attribute, reason)


def _add(known: _Reasons, attribute: Any, reason: Unstable | None) -> None:
    number = _id(attribute)
    if reason is not None and (number not in known or known[number].per_query):
        known[number] = reason


def _reason(root: Any, known: Mapping[int, Unstable]) -> Unstable | None:
    """Return why an expression may have another value; None if it has always the same.

    What changes within a query outweighs what changes from one to the next.
    """
    found: Unstable | None = None
    stack = [root]
    while stack:
        expression = stack.pop()
        kind = _kind(expression)
        reason, known_below = _own_reason(expression, kind, known)
        if reason is not None and (found is None or found.per_query):
            found = reason
        if not known_below:
            stack += _items(expression.children())
    return found


def _own_reason(
    expression: Any, kind: str, known: Mapping[int, Unstable]
) -> tuple[Unstable | None, bool]:
    """Return what is wrong with an expression itself, and whether that settles what is in it."""
    if kind == "AttributeReference":
        return known.get(_id(expression)), True
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
    # Only where the children are not what is to blame, so that the reason names the function.
    if not expression.deterministic() and all(
        child.deterministic() for child in _items(expression.children())
    ):
        return Unstable(f"{_name(expression)} differs at each attempt"), False
    return None, False


def _aggregate_reason(function: Any) -> Unstable | None:
    kind = _kind(function)
    if kind in _CODE:
        return None
    if kind not in _ORDERLESS:
        return Unstable(f"{_name(function)} may depend on the order in which rows come")
    if kind in _SUMS and any(
        child.dataType().typeName() in _INEXACT for child in _items(function.children())
    ):
        return Unstable(
            f"{_name(function)} of {_items(function.children())[0].dataType().typeName()} numbers "
            "differs in its last digits with the order in which rows come"
        )
    return None


def _window_reason(expression: Any) -> Unstable | None:
    function = expression.windowFunction()
    kind = _kind(function)
    if kind in _TIELESS:
        return None
    if kind == "AggregateExpression":
        # Over rows, not values: which of two equal rows comes first is not settled.
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
