package windrow;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.List;
import org.apache.spark.api.python.PythonUtils;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.Ascending$;
import org.apache.spark.sql.catalyst.expressions.AttributeSet;
import org.apache.spark.sql.catalyst.expressions.BoundReference;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.GenericInternalRow;
import org.apache.spark.sql.catalyst.expressions.GreaterThanOrEqual;
import org.apache.spark.sql.catalyst.expressions.If;
import org.apache.spark.sql.catalyst.expressions.InputFileBlockLength;
import org.apache.spark.sql.catalyst.expressions.InputFileBlockStart;
import org.apache.spark.sql.catalyst.expressions.InputFileName;
import org.apache.spark.sql.catalyst.expressions.InterpretedOrdering;
import org.apache.spark.sql.catalyst.expressions.IsNull;
import org.apache.spark.sql.catalyst.expressions.LessThanOrEqual;
import org.apache.spark.sql.catalyst.expressions.Literal;
import org.apache.spark.sql.catalyst.expressions.Literal$;
import org.apache.spark.sql.catalyst.expressions.NullsFirst$;
import org.apache.spark.sql.catalyst.expressions.Or;
import org.apache.spark.sql.catalyst.expressions.SortOrder;
import org.apache.spark.sql.catalyst.plans.logical.Filter;
import org.apache.spark.sql.catalyst.plans.logical.LocalLimit;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.Project;
import org.apache.spark.sql.catalyst.plans.logical.Sort;
import org.apache.spark.sql.catalyst.rules.Rule;
import org.apache.spark.sql.catalyst.trees.TreeNode;
import org.apache.spark.sql.execution.datasources.HadoopFsRelation;
import org.apache.spark.sql.execution.datasources.LogicalRelation;
import scala.Function1;
import scala.runtime.AbstractPartialFunction;

/**
 * Tells scans of our tables whether the query asks for the names of files, and the optimizer which
 * partitions it needs. Spark goes on to change the plan, so what is said here of a scan stays true
 * whatever comes to lie above it.
 */
public final class TableHints extends Rule {
    @Override
    public TreeNode apply(TreeNode plan) {
        return naming((LogicalPlan) plan.transform(new TopPartitions()).transform(new Sizing()));
    }

    private static LogicalPlan naming(LogicalPlan plan) {
        LogicalPlan changed = namesFiles((SEQ) plan.expressions())
            ? (LogicalPlan) plan.transform(new Naming()) : plan;
        SEQ children = (SEQ) changed.children();
        List named = new ArrayList();
        boolean isSame = true;
        for (int i = 0; i < children.size(); i++) {
            LogicalPlan child = naming((LogicalPlan) children.apply(i));
            isSame &= child == children.apply(i);
            named.add(child);
        }
        return isSame ? changed
            : (LogicalPlan) changed.withNewChildren((SEQ) PythonUtils.toSeq(named));
    }

    /** Tells whether a query asks for the files of rows. */
    public static boolean namesFiles(LogicalPlan plan) {
        if (namesFiles((SEQ) plan.expressions())) return true;
        SEQ children = (SEQ) plan.children();
        for (int i = 0; i < children.size(); i++) {
            if (namesFiles((LogicalPlan) children.apply(i))) return true;
        }
        return false;
    }

    private static boolean namesFiles(SEQ expressions) {
        for (int i = 0; i < expressions.size(); i++) {
            Expression expression = (Expression) expressions.apply(i);
            if (expression instanceof InputFileName || expression instanceof InputFileBlockStart
                || expression instanceof InputFileBlockLength) return true;
            if (namesFiles((SEQ) expression.children())) return true;
        }
        return false;
    }

    static LogicalPlan with(LogicalRelation leaf, TableIndex index) {
        HadoopFsRelation files = (HadoopFsRelation) leaf.relation();
        Object[] arguments = new Object[leaf.productArity()];
        for (int i = 1; i < arguments.length; i++) arguments[i] = leaf.productElement(i);
        arguments[0] = new HadoopFsRelation(
            index, files.partitionSchema(), files.dataSchema(), files.bucketSpec(),
            files.fileFormat(), files.options(), files.sparkSession());
        return (LogicalPlan) leaf.makeCopy(arguments);
    }

    static TableIndex indexOf(LogicalRelation leaf) {
        return (TableIndex) ((HadoopFsRelation) leaf.relation()).location();
    }

    private static final class Naming extends AbstractPartialFunction {
        @Override
        public boolean isDefinedAt(Object node) {
            return TableStrategy.isOurs(node) && !indexOf((LogicalRelation) node).names;
        }

        @Override
        public Object applyOrElse(Object node, Function1 other) {
            if (!isDefinedAt(node)) return other.apply(node);
            LogicalRelation leaf = (LogicalRelation) node;
            return with(leaf, indexOf(leaf).naming());
        }
    }

    /** Tells the optimizer how large the partitions are that the query needs. */
    private static final class Sizing extends AbstractPartialFunction {
        @Override
        public boolean isDefinedAt(Object node) {
            return sized(node) != null;
        }

        @Override
        public Object applyOrElse(Object node, Function1 other) {
            LogicalPlan sized = sized(node);
            return sized == null ? other.apply(node) : sized;
        }

        private static LogicalPlan sized(Object node) {
            if (node instanceof Filter) return sized((Filter) node);
            if (!TableStrategy.isOurs(node) || !TableStatistics.areUsed()) return null;
            LogicalRelation leaf = (LogicalRelation) node;
            TableIndex index = indexOf(leaf);
            if (index.sized) return null;
            boolean[] all = new boolean[index.values().rows.length];
            Arrays.fill(all, true);
            return sized(leaf, all, index.sizeInBytes());
        }

        private static LogicalPlan sized(LogicalRelation leaf, boolean[] passing, long bytes) {
            TableIndex index = indexOf(leaf);
            LogicalRelation sized = (LogicalRelation) with(leaf, index.sized(bytes));
            if (!TableStatistics.areUsed()) return sized;
            return TableStatistics.with(sized, index.values(), passing);
        }

        private static LogicalPlan sized(Filter filter) {
            PartitionConditions conditions = PartitionConditions.of(filter);
            if (conditions == null || conditions.filters.size() == 0) return null;
            TableIndex index = indexOf(conditions.leaf);
            if (index.sized) return null;
            PartitionValues values = index.values();
            boolean[] passing = values.passing(conditions.filters);
            long bytes = 0;
            for (int i = 0; i < passing.length; i++) if (passing[i]) bytes += values.sizeInBytes[i];
            LogicalPlan leaf = sized(conditions.leaf, passing, bytes);
            return (LogicalPlan) filter.transform(new Replacing(conditions.leaf, leaf));
        }
    }

    /**
     * Leaves out partitions that cannot hold any of the first rows in the order of a partition
     * column, as the rows of others are enough.
     */
    private static final class TopPartitions extends AbstractPartialFunction {
        @Override
        public boolean isDefinedAt(Object node) {
            return node instanceof LocalLimit && fewer((LocalLimit) node) != null;
        }

        @Override
        public Object applyOrElse(Object node, Function1 other) {
            LogicalPlan fewer = node instanceof LocalLimit ? fewer((LocalLimit) node) : null;
            return fewer == null ? other.apply(node) : fewer;
        }

        private static LogicalPlan fewer(LocalLimit limit) {
            LogicalPlan below = limit.child();
            while (below instanceof Project) below = (LogicalPlan) below.children().apply(0);
            if (!(limit.limitExpr() instanceof Literal) || !(below instanceof Sort)) return null;
            Sort sort = (Sort) below;
            PartitionConditions conditions = PartitionConditions.of(sort.child());
            if (!sort.global() || conditions == null || !conditions.complete) return null;
            TableIndex index = indexOf(conditions.leaf);
            SortOrder order = (SortOrder) sort.order().apply(0);
            AttributeSet columns = PartitionConditions.partitionColumns(conditions.leaf);
            if (!index.isWhole() || order.child().references().isEmpty()
                || !PartitionConditions.isOn(order.child(), columns)) return null;
            long rows = ((Number) ((Literal) limit.limitExpr()).value()).longValue();
            Expression condition = condition(index.values(), conditions.filters, order, rows);
            if (condition == null) return null;
            // The key may be an error for partitions that other conditions leave out.
            for (int i = conditions.filters.size() - 1; i >= 0; i--) {
                condition = new If(
                    (Expression) conditions.filters.apply(i), condition,
                    Literal$.MODULE$.FalseLiteral());
            }
            LogicalPlan filter = new Filter(condition, sort.child());
            return (LogicalPlan) limit.transform(new Replacing(
                sort, (LogicalPlan) sort.withNewChildren(
                    (SEQ) PythonUtils.toSeq(Collections.singletonList(filter)))));
        }

        /** Returns a condition for the partitions that hold the first rows; null if all may. */
        private static Expression condition(
                PartitionValues values, SEQ filters, SortOrder order, long enough) {
            boolean[] passing = values.passing(filters);
            Object[] keys = values.evaluated(order.child(), passing);
            List rows = new ArrayList();
            for (int i = 0; i < keys.length; i++) {
                if (!passing[i]) continue;
                if (values.rowCounts[i] < 0) return null;
                rows.add(new GenericInternalRow(
                    new Object[] {keys[i], Long.valueOf(values.rowCounts[i])}));
            }
            BoundReference key = new BoundReference(0, order.child().dataType(), true);
            InterpretedOrdering ordering = new InterpretedOrdering(
                (SEQ) PythonUtils.toSeq(Collections.singletonList(new SortOrder(
                    key, order.direction(), order.nullOrdering(),
                    (SEQ) PythonUtils.toSeq(new ArrayList())))));
            Collections.sort(rows, ordering);
            long count = 0;
            int last = 0;
            while (last < rows.size()) {
                count += ((InternalRow) rows.get(last)).getLong(1);
                if (count >= enough) break;
                last++;
            }
            if (last >= rows.size()) return null;
            InternalRow boundary = (InternalRow) rows.get(last);
            if (ordering.compare((InternalRow) rows.get(rows.size() - 1), boundary) == 0) return null;
            boolean nullsFirst = order.nullOrdering() instanceof NullsFirst$;
            if (boundary.isNullAt(0)) return new IsNull(order.child());
            Expression value = new Literal(
                boundary.get(0, order.child().dataType()), order.child().dataType());
            Expression within = order.direction() instanceof Ascending$
                ? new LessThanOrEqual(order.child(), value)
                : (Expression) new GreaterThanOrEqual(order.child(), value);
            return nullsFirst ? new Or(new IsNull(order.child()), within) : within;
        }
    }

    /** Replaces one plan with another. */
    static final class Replacing extends AbstractPartialFunction {
        private final LogicalPlan out;
        private final LogicalPlan in;

        Replacing(LogicalPlan out, LogicalPlan in) {
            this.out = out;
            this.in = in;
        }

        @Override
        public boolean isDefinedAt(Object node) {
            return node == out;
        }

        @Override
        public Object applyOrElse(Object node, Function1 other) {
            return node == out ? in : other.apply(node);
        }
    }
}
