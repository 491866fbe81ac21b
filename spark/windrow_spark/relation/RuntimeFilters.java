package windrow;

import java.lang.reflect.Constructor;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.List;
import org.apache.spark.api.python.PythonUtils;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.Alias;
import org.apache.spark.sql.catalyst.expressions.And;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.AttributeReference;
import org.apache.spark.sql.catalyst.expressions.DynamicPruning;
import org.apache.spark.sql.catalyst.expressions.DynamicPruningExpression;
import org.apache.spark.sql.catalyst.expressions.DynamicPruningSubquery;
import org.apache.spark.sql.catalyst.expressions.ExprId;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.GreaterThanOrEqual;
import org.apache.spark.sql.catalyst.expressions.In;
import org.apache.spark.sql.catalyst.expressions.InterpretedOrdering$;
import org.apache.spark.sql.catalyst.expressions.IsNotNull;
import org.apache.spark.sql.catalyst.expressions.LessThanOrEqual;
import org.apache.spark.sql.catalyst.expressions.Literal;
import org.apache.spark.sql.catalyst.expressions.Literal$;
import org.apache.spark.sql.catalyst.expressions.NamedExpression;
import org.apache.spark.sql.catalyst.expressions.NamedExpression$;
import org.apache.spark.sql.catalyst.planning.ExtractEquiJoinKeys$;
import org.apache.spark.sql.catalyst.plans.Inner$;
import org.apache.spark.sql.catalyst.plans.JoinType;
import org.apache.spark.sql.catalyst.plans.LeftAnti$;
import org.apache.spark.sql.catalyst.plans.LeftOuter$;
import org.apache.spark.sql.catalyst.plans.LeftSemi$;
import org.apache.spark.sql.catalyst.plans.RightOuter$;
import org.apache.spark.sql.catalyst.plans.logical.BROADCAST$;
import org.apache.spark.sql.catalyst.plans.logical.Filter;
import org.apache.spark.sql.catalyst.plans.logical.HintInfo;
import org.apache.spark.sql.catalyst.plans.logical.Join;
import org.apache.spark.sql.catalyst.plans.logical.LocalRelation;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.Project;
import org.apache.spark.sql.catalyst.plans.logical.Subquery;
import org.apache.spark.sql.catalyst.rules.Rule;
import org.apache.spark.sql.catalyst.trees.TreeNode;
import org.apache.spark.sql.execution.InSubqueryExec;
import org.apache.spark.sql.execution.datasources.LogicalRelation;
import org.apache.spark.sql.internal.SQLConf;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.DecimalType;
import scala.Function1;
import scala.Option;
import scala.Product;
import scala.math.Ordering;
import scala.runtime.AbstractPartialFunction;

/**
 * Lets a join with a small, selective table prune files of ours by the keys that this table turns
 * out to have. Spark does so for partition columns alone; its own dynamic pruning carries these
 * filters to our scans, which compare them with the statistics of files.
 *
 * Runs after Spark's rule, when both sides of a join have their last shape: Spark drops a filter
 * whose subquery is not what the join broadcasts.
 */
public final class RuntimeFilters extends Rule {
    /** More keys are compared by their bounds. */
    private static final int MOST_KEYS = 1000;

    @Override
    public TreeNode apply(TreeNode plan) {
        SQLConf conf = SQLConf.get();
        if (!conf.dynamicPartitionPruningEnabled() || !conf.exchangeReuseEnabled()) return plan;
        // Spark may yet make a part of the query of it, and would join its filters with others.
        if (plan instanceof Subquery) return plan;
        // Sessions repeat their own rules until nothing changes, and each filter is a new one.
        if (hasAny((LogicalPlan) plan)) return plan;
        return ((LogicalPlan) plan).transformUpWithSubqueries(new Filtering());
    }

    private static boolean hasAny(LogicalPlan plan) {
        if (plan instanceof Filter && TableStrategy.isOurs(((Filter) plan).child())
            && isOne((Filter) plan, (LogicalRelation) ((Filter) plan).child())) return true;
        SEQ children = (SEQ) plan.children();
        for (int i = 0; i < children.size(); i++) {
            if (hasAny((LogicalPlan) children.apply(i))) return true;
        }
        SEQ subqueries = (SEQ) plan.subqueries();
        for (int i = 0; i < subqueries.size(); i++) {
            if (hasAny((LogicalPlan) subqueries.apply(i))) return true;
        }
        return false;
    }

    private static boolean isOne(Filter filter, LogicalRelation leaf) {
        return filter.condition() instanceof DynamicPruningSubquery
            && isOn(((DynamicPruningSubquery) filter.condition()).pruningKey(), leaf);
    }

    /** Returns a plan of projections and filters without the filters of this rule. */
    static LogicalPlan removed(LogicalPlan plan, LogicalRelation leaf, List removed) {
        if (plan == leaf) return plan;
        LogicalPlan child = (LogicalPlan) plan.children().apply(0);
        LogicalPlan changed = removed(child, leaf, removed);
        if (plan instanceof Filter && isOne((Filter) plan, leaf)) {
            removed.add(((Filter) plan).condition());
            return changed;
        }
        return changed == child ? plan : (LogicalPlan) plan.withNewChildren(
            (SEQ) PythonUtils.toSeq(Collections.singletonList(changed)));
    }

    /** Returns what the keys of a filter that has run say of its column; null if nothing. */
    static Expression evaluated(DynamicPruningExpression filter) {
        if (!(filter.child() instanceof InSubqueryExec)) return null;
        InSubqueryExec subquery = (InSubqueryExec) filter.child();
        DataType type = subquery.child().dataType();
        InternalRow[] rows = subquery.plan().executeCollect();
        List keys = new ArrayList();
        Ordering order = InterpretedOrdering$.MODULE$.forSchema(
            (SEQ) PythonUtils.toSeq(Collections.singletonList(type)));
        InternalRow least = null;
        InternalRow most = null;
        for (int i = 0; i < rows.length; i++) {
            if (rows[i].isNullAt(0)) continue;
            if (rows.length <= MOST_KEYS) keys.add(new Literal(rows[i].get(0, type), type));
            if (least == null || order.compare(rows[i], least) < 0) least = rows[i];
            if (most == null || order.compare(rows[i], most) > 0) most = rows[i];
        }
        if (least == null) return Literal$.MODULE$.FalseLiteral();
        Expression column = subquery.child();
        if (rows.length <= MOST_KEYS) return new In(column, (SEQ) PythonUtils.toSeq(keys));
        return new And(
            new GreaterThanOrEqual(column, new Literal(least.get(0, type), type)),
            new LessThanOrEqual(column, new Literal(most.get(0, type), type)));
    }

    private static boolean isOn(Expression key, LogicalRelation leaf) {
        return key instanceof AttributeReference && leaf.outputSet().contains((Attribute) key)
            && !PartitionConditions.partitionColumns(leaf).contains((Attribute) key);
    }

    private static final class Filtering extends AbstractPartialFunction {
        @Override
        public boolean isDefinedAt(Object node) {
            return node instanceof Join;
        }

        @Override
        public Object applyOrElse(Object node, Function1 other) {
            return node instanceof Join ? filtered((Join) node) : other.apply(node);
        }

        private static LogicalPlan filtered(Join join) {
            Option equalities = ExtractEquiJoinKeys$.MODULE$.unapply(join);
            if (!equalities.isDefined()) return join;
            SEQ left = (SEQ) ((Product) equalities.get()).productElement(1);
            SEQ right = (SEQ) ((Product) equalities.get()).productElement(2);
            JoinType type = join.joinType();
            boolean inner = type == Inner$.MODULE$ || type == LeftSemi$.MODULE$;
            LogicalPlan first = join.left();
            LogicalPlan second = join.right();
            if ((inner || type == RightOuter$.MODULE$) && isBuilt(second, join.hint().rightHint())) {
                first = filtered(first, left, second, right);
            }
            // A side that the other one waits for must not wait for it.
            if (first == join.left() && (inner || type == LeftOuter$.MODULE$)
                && isBuilt(join.left(), join.hint().leftHint())) {
                second = filtered(second, right, first, left);
            }
            if (first == join.left() && second == join.right()) return join;
            return (LogicalPlan) join.withNewChildren(
                (SEQ) PythonUtils.toSeq(Arrays.asList(new Object[] {first, second})));
        }

        /** Tells whether Spark may broadcast a side that has fewer keys than its tables. */
        private static boolean isBuilt(LogicalPlan side, Option hint) {
            if (side.isStreaming()) return false;
            boolean asked = hint.isDefined()
                && ((HintInfo) hint.get()).strategy().contains(BROADCAST$.MODULE$);
            long most = SQLConf.get().autoBroadcastJoinThreshold();
            return (asked || side.stats().sizeInBytes().isValidLong()
                && side.stats().sizeInBytes().toLong() <= most) && isSelective(side);
        }

        private static boolean isSelective(LogicalPlan side) {
            if (side instanceof LocalRelation) return true;
            if (side instanceof Filter && selects(((Filter) side).condition())) return true;
            SEQ children = (SEQ) side.children();
            for (int i = 0; i < children.size(); i++) {
                if (isSelective((LogicalPlan) children.apply(i))) return true;
            }
            return false;
        }

        private static boolean selects(Expression condition) {
            if (condition instanceof And) {
                return selects(((And) condition).left()) || selects(((And) condition).right());
            }
            return !(condition instanceof IsNotNull) && !(condition instanceof DynamicPruning);
        }

        private static LogicalPlan filtered(LogicalPlan plan, SEQ keys, LogicalPlan build, SEQ buildKeys) {
            for (int i = 0; i < keys.size(); i++) {
                Object key = keys.apply(i);
                if (key instanceof AttributeReference && isComparable(((Expression) key).dataType())) {
                    plan = below(plan, (AttributeReference) key, build, buildKeys, i);
                }
            }
            return plan;
        }

        /** Types whose equal values are equal in statistics, too: not 0.0 and -0.0, say. */
        private static boolean isComparable(DataType type) {
            return type instanceof DecimalType || Arrays.asList(new Object[] {
                DataTypes.ByteType, DataTypes.ShortType, DataTypes.IntegerType, DataTypes.LongType,
                DataTypes.DateType, DataTypes.TimestampType, DataTypes.StringType,
            }).contains(type);
        }

        /** Puts a filter right above our scan, where nothing in between counts or changes rows. */
        private static LogicalPlan below(
                LogicalPlan plan, AttributeReference key, LogicalPlan build, SEQ buildKeys, int at) {
            if (TableStrategy.isOurs(plan)) {
                if (!isOn(key, (LogicalRelation) plan)) return plan;
                return new Filter(subquery(key, build, buildKeys, at), plan);
            }
            SEQ children = (SEQ) plan.children();
            int side = 0;
            if (plan instanceof Project) {
                key = source((Project) plan, key);
            } else if (plan instanceof Filter) {
                if (!((Filter) plan).condition().deterministic()) return plan;
            } else if (plan instanceof Join) {
                side = sideOf((Join) plan, key);
            } else {
                return plan;
            }
            if (key == null || side < 0) return plan;
            List changed = new ArrayList();
            for (int i = 0; i < children.size(); i++) {
                LogicalPlan child = (LogicalPlan) children.apply(i);
                changed.add(i == side ? below(child, key, build, buildKeys, at) : child);
            }
            if (changed.get(side) == children.apply(side)) return plan;
            return (LogicalPlan) plan.withNewChildren((SEQ) PythonUtils.toSeq(changed));
        }

        /** Returns the column that a projection passes on as `key`; null if it computes anything. */
        private static AttributeReference source(Project project, AttributeReference key) {
            AttributeReference source = null;
            SEQ list = project.projectList();
            for (int i = 0; i < list.size(); i++) {
                NamedExpression one = (NamedExpression) list.apply(i);
                if (!((Expression) one).deterministic()) return null;
                if (!one.exprId().equals(key.exprId())) continue;
                Object value = one instanceof Alias ? ((Alias) one).child() : one;
                if (value instanceof AttributeReference) source = (AttributeReference) value;
            }
            return source;
        }

        /** Returns which side of a join loses no other rows if those of a key are left out of it. */
        private static int sideOf(Join join, AttributeReference key) {
            JoinType type = join.joinType();
            boolean both = type == Inner$.MODULE$;
            if (join.left().outputSet().contains(key)) {
                return both || type == LeftSemi$.MODULE$ || type == LeftAnti$.MODULE$
                    || type == LeftOuter$.MODULE$ ? 0 : -1;
            }
            return both || type == RightOuter$.MODULE$ ? 1 : -1;
        }

        /** Returns the keys of the other side, as versions of Spark write it. */
        private static Expression subquery(
                AttributeReference key, LogicalPlan build, SEQ buildKeys, int at) {
            Constructor made = DynamicPruningSubquery.class.getConstructors()[0];
            Object index = made.getParameterTypes()[3] == int.class ? (Object) Integer.valueOf(at)
                : PythonUtils.toSeq(Collections.singletonList(Integer.valueOf(at)));
            ExprId id = NamedExpression$.MODULE$.newExprId();
            Object[] arguments = {
                key, build, buildKeys, index, Boolean.TRUE, id, Option.empty(), Option.empty(),
            };
            try {
                return (Expression) made.newInstance(
                    Arrays.copyOf(arguments, made.getParameterTypes().length));
            } catch (ReflectiveOperationException error) {
                throw new IllegalStateException(error.toString());
            }
        }
    }
}
