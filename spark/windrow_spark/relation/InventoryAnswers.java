package windrow;

import java.lang.reflect.Constructor;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import org.apache.spark.api.python.PythonUtils;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.AttributeReference;
import org.apache.spark.sql.catalyst.expressions.AttributeSet;
import org.apache.spark.sql.catalyst.expressions.Coalesce;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.GenericInternalRow;
import org.apache.spark.sql.catalyst.expressions.If;
import org.apache.spark.sql.catalyst.expressions.IsNull;
import org.apache.spark.sql.catalyst.expressions.Literal;
import org.apache.spark.sql.catalyst.expressions.NamedExpression$;
import org.apache.spark.sql.catalyst.expressions.aggregate.AggregateExpression;
import org.apache.spark.sql.catalyst.expressions.aggregate.AggregateFunction;
import org.apache.spark.sql.catalyst.expressions.aggregate.Count;
import org.apache.spark.sql.catalyst.expressions.aggregate.Max;
import org.apache.spark.sql.catalyst.expressions.aggregate.Min;
import org.apache.spark.sql.catalyst.expressions.aggregate.Sum;
import org.apache.spark.sql.catalyst.plans.logical.Aggregate;
import org.apache.spark.sql.catalyst.plans.logical.LocalRelation;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.Project;
import org.apache.spark.sql.catalyst.rules.Rule;
import org.apache.spark.sql.catalyst.trees.TreeNode;
import org.apache.spark.sql.execution.datasources.HadoopFsRelation;
import org.apache.spark.sql.execution.datasources.LogicalRelation;
import org.apache.spark.sql.internal.SQLConf;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.Metadata;
import org.apache.spark.sql.types.StructType;
import scala.Function1;
import scala.Option;
import scala.runtime.AbstractPartialFunction;

/**
 * Answers aggregates that do not depend on how many rows a partition has, such as max(ds), from the
 * partitions of the snapshot; counts, if the session accepts the counts of the inventory; and others
 * from packs that hold all files they need.
 */
public final class InventoryAnswers extends Rule {
    private static final String COUNTS = "spark.windrow.inventory_counts";
    private static final String PACKS = "spark.windrow.packs";
    private static final String FIGURES = "spark.windrow.figures";

    @Override
    public TreeNode apply(TreeNode plan) {
        return plan.transform(new Answering());
    }

    private static final class Answering extends AbstractPartialFunction {
        @Override
        public boolean isDefinedAt(Object node) {
            return node instanceof Aggregate && answered((Aggregate) node) != null;
        }

        @Override
        public Object applyOrElse(Object node, Function1 other) {
            LogicalPlan answered = node instanceof Aggregate ? answered((Aggregate) node) : null;
            return answered == null ? other.apply(node) : answered;
        }
    }

    private static LogicalPlan answered(Aggregate aggregate) {
        PartitionConditions conditions = PartitionConditions.of(aggregate.child());
        if (conditions == null || !conditions.complete) return null;
        TableIndex index = (TableIndex) ((HadoopFsRelation) conditions.leaf.relation()).location();
        if (!index.isWhole()) return null;
        LogicalPlan answered = answered(aggregate, conditions, index);
        boolean figures = answered == null && isOn(PACKS) && isOn(FIGURES);
        return figures ? FigureAnswers.of(aggregate, conditions, index) : answered;
    }

    private static boolean isOn(String setting) {
        return SQLConf.get().getConfString(setting, "true").equalsIgnoreCase("true");
    }

    private static LogicalPlan answered(
            Aggregate aggregate, PartitionConditions conditions, TableIndex index) {
        boolean counts = SQLConf.get().getConfString(COUNTS, "false").equals("true");
        if (!needsNoRows(aggregate.aggregateExpressions(), counts)) return null;
        AttributeSet columns = PartitionConditions.partitionColumns(conditions.leaf);
        if (columns.isEmpty() && !counts) return null;
        AttributeSet used = aggregate.references();
        LogicalPlan below = aggregate.child();
        while (below != conditions.leaf) {
            used = used.$plus$plus(below.references());
            below = (LogicalPlan) below.children().apply(0);
        }
        if (!used.intersect(conditions.leaf.outputSet()).subsetOf(columns)) return null;
        return withPartitions(aggregate, conditions.leaf, index, counts);
    }

    /** Tells whether aggregates are the same for any number of rows with the same values. */
    private static boolean needsNoRows(SEQ expressions, boolean counts) {
        for (int i = 0; i < expressions.size(); i++) {
            Expression expression = (Expression) expressions.apply(i);
            if (expression instanceof AggregateExpression) {
                AggregateExpression aggregate = (AggregateExpression) expression;
                AggregateFunction function = aggregate.aggregateFunction();
                boolean fits = aggregate.isDistinct() || function instanceof Min
                    || function instanceof Max
                    || counts && function instanceof Count && !aggregate.filter().isDefined()
                        && ((SEQ) function.children()).size() == 1;
                if (!fits) return false;
            } else if (!needsNoRows((SEQ) expression.children(), counts)) {
                return false;
            }
        }
        return true;
    }

    private static LogicalPlan withPartitions(
            Aggregate aggregate, LogicalRelation leaf, TableIndex index, boolean counts) {
        PartitionValues values = index.values();
        StructType partition = index.partitionSchema();
        int width = partition.fields().length;
        List output = new ArrayList();
        int[] places = new int[width];
        for (int i = 0; i < leaf.output().size(); i++) {
            Attribute column = (Attribute) leaf.output().apply(i);
            if (!partition.getFieldIndex(column.name()).isDefined()) continue;
            places[output.size()] = partition.fieldIndex(column.name());
            output.add(column);
        }
        Attribute count = new AttributeReference(
            "rows", DataTypes.LongType, false, Metadata.empty(), NamedExpression$.MODULE$.newExprId(),
            (SEQ) PythonUtils.toSeq(new ArrayList()));
        if (counts) output.add(count);
        List rows = new ArrayList();
        for (int i = 0; i < values.rows.length; i++) {
            // Files may hold no rows, so a count that is not known leaves the answer open.
            if (values.rowCounts[i] < 0) return null;
            if (values.rowCounts[i] == 0) continue;
            Object[] row = new Object[output.size()];
            for (int j = 0; j < output.size(); j++) {
                row[j] = counts && j == output.size() - 1 ? Long.valueOf(values.rowCounts[i])
                    : values.rows[i].get(places[j], partition.fields()[places[j]].dataType());
            }
            rows.add(new GenericInternalRow(row));
        }
        LogicalPlan local = localRelation(
            (SEQ) PythonUtils.toSeq(output), (SEQ) PythonUtils.toSeq(rows));
        LogicalPlan child = (LogicalPlan) aggregate.child().transform(
            new Replacing(leaf, local, counts ? count : null));
        LogicalPlan changed = (LogicalPlan) aggregate.withNewChildren(
            (SEQ) PythonUtils.toSeq(java.util.Collections.singletonList(child)));
        return counts ? (LogicalPlan) changed.transformExpressions(new Counting(count)) : changed;
    }

    /** Returns rows as a relation, which has one argument more since Spark 4.1. */
    static LogicalPlan localRelation(SEQ output, SEQ rows) {
        Constructor made = LocalRelation.class.getConstructors()[0];
        Object[] arguments = {output, rows, Boolean.FALSE, Option.empty()};
        try {
            return (LogicalPlan) made.newInstance(
                Arrays.copyOf(arguments, made.getParameterTypes().length));
        } catch (ReflectiveOperationException error) {
            throw new IllegalStateException(error.toString());
        }
    }

    /** Puts the partitions in place of the scan, and lets their row counts pass. */
    private static final class Replacing extends AbstractPartialFunction {
        private final LogicalPlan out;
        private final LogicalPlan in;
        private final Attribute count;

        Replacing(LogicalPlan out, LogicalPlan in, Attribute count) {
            this.out = out;
            this.in = in;
            this.count = count;
        }

        @Override
        public boolean isDefinedAt(Object node) {
            return node == out || count != null && node instanceof Project && !passes((Project) node);
        }

        private boolean passes(Project project) {
            return project.outputSet().contains(count);
        }

        @Override
        public Object applyOrElse(Object node, Function1 other) {
            if (node == out) return in;
            if (!isDefinedAt(node)) return other.apply(node);
            Project project = (Project) node;
            List list = new ArrayList();
            for (int i = 0; i < project.projectList().size(); i++) list.add(project.projectList().apply(i));
            list.add(count);
            return new Project((SEQ) PythonUtils.toSeq(list), project.child());
        }
    }

    /** Replaces counts of rows with sums of the partitions' counts. */
    private static final class Counting extends AbstractPartialFunction {
        private final Attribute count;

        Counting(Attribute count) {
            this.count = count;
        }

        @Override
        public boolean isDefinedAt(Object node) {
            return node instanceof AggregateExpression
                && !((AggregateExpression) node).isDistinct()
                && ((AggregateExpression) node).aggregateFunction() instanceof Count;
        }

        @Override
        public Object applyOrElse(Object node, Function1 other) {
            if (!isDefinedAt(node)) return other.apply(node);
            AggregateExpression aggregate = (AggregateExpression) node;
            Expression counted = (Expression) aggregate.aggregateFunction().children().apply(0);
            Expression zero = new Literal(Long.valueOf(0), DataTypes.LongType);
            Expression rows = counted.nullable()
                ? new If(new IsNull(counted), zero, count) : (Expression) count;
            List parts = new ArrayList();
            parts.add(aggregate.withNewChildren(
                (SEQ) PythonUtils.toSeq(java.util.Collections.singletonList(new Sum(rows)))));
            parts.add(zero);
            return new Coalesce((SEQ) PythonUtils.toSeq(parts));
        }
    }
}
