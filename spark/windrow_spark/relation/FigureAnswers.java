package windrow;

import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import org.apache.spark.api.python.PythonUtils;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.AttributeReference;
import org.apache.spark.sql.catalyst.expressions.AttributeSet;
import org.apache.spark.sql.catalyst.expressions.Coalesce;
import org.apache.spark.sql.catalyst.expressions.Divide;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.GenericInternalRow;
import org.apache.spark.sql.catalyst.expressions.GreaterThan;
import org.apache.spark.sql.catalyst.expressions.If;
import org.apache.spark.sql.catalyst.expressions.IsNull;
import org.apache.spark.sql.catalyst.expressions.Literal;
import org.apache.spark.sql.catalyst.expressions.MakeDecimal;
import org.apache.spark.sql.catalyst.expressions.NamedExpression$;
import org.apache.spark.sql.catalyst.expressions.aggregate.AggregateExpression;
import org.apache.spark.sql.catalyst.expressions.aggregate.AggregateFunction;
import org.apache.spark.sql.catalyst.expressions.aggregate.Average;
import org.apache.spark.sql.catalyst.expressions.aggregate.Count;
import org.apache.spark.sql.catalyst.expressions.aggregate.Max;
import org.apache.spark.sql.catalyst.expressions.aggregate.Min;
import org.apache.spark.sql.catalyst.expressions.aggregate.Sum;
import org.apache.spark.sql.catalyst.plans.logical.Aggregate;
import org.apache.spark.sql.catalyst.plans.logical.Filter;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.Project;
import org.apache.spark.sql.execution.datasources.LogicalRelation;
import org.apache.spark.sql.types.ByteType;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.DateType;
import org.apache.spark.sql.types.Decimal;
import org.apache.spark.sql.types.DecimalType;
import org.apache.spark.sql.types.IntegerType;
import org.apache.spark.sql.types.LongType;
import org.apache.spark.sql.types.Metadata;
import org.apache.spark.sql.types.ShortType;
import org.apache.spark.sql.types.StructType;
import scala.Function1;
import scala.runtime.AbstractPartialFunction;

/** An aggregation of partitions, answered from what packs tell of the values of some columns. */
final class FigureAnswers {
    /** Sums of absolute values below are exact, in long integers and in doubles. */
    private static final double MOST = 4e18;
    private static final double MOST_IN_DOUBLES = 9e15;
    private static final int MOST_DIGITS = 18;

    private final Aggregate aggregate;
    private final LogicalRelation leaf;
    private final TableIndex index;
    private final PartitionConditions conditions;
    private final AttributeSet partition;
    /** The columns of which figures are needed. */
    private final List columns = new ArrayList();
    private final List averaged = new ArrayList();
    private final Attribute rows = attribute("packed_rows", DataTypes.LongType);
    /** Of each column: count, least, greatest, total, and total and count as doubles. */
    private final List figures = new ArrayList();

    private FigureAnswers(Aggregate aggregate, PartitionConditions conditions, TableIndex index) {
        this.aggregate = aggregate;
        this.conditions = conditions;
        this.leaf = conditions.leaf;
        this.index = index;
        this.partition = PartitionConditions.partitionColumns(leaf);
    }

    /** Returns the answer; null if it needs rows. */
    static LogicalPlan of(Aggregate aggregate, PartitionConditions conditions, TableIndex index) {
        return new FigureAnswers(aggregate, conditions, index).answered();
    }

    private LogicalPlan answered() {
        if (!fit(aggregate.aggregateExpressions()) || !needsNoValues()) return null;
        List names = new ArrayList();
        for (int i = 0; i < columns.size(); i++) names.add(((Attribute) columns.get(i)).name());
        PartitionFigures told = index.figures(names);
        if (told == null) return null;
        for (int i = 0; i < columns.size(); i++) figures.add(attributes((Attribute) columns.get(i)));
        List local = rows(told);
        if (local == null) return null;
        LogicalPlan relation = InventoryAnswers.localRelation(
            (SEQ) PythonUtils.toSeq(output()), (SEQ) PythonUtils.toSeq(local));
        LogicalPlan child = (LogicalPlan) aggregate.child().transform(new Replacing(relation));
        LogicalPlan changed = (LogicalPlan) aggregate.withNewChildren(
            (SEQ) PythonUtils.toSeq(Collections.singletonList(child)));
        return (LogicalPlan) changed.transformExpressions(new Telling());
    }

    private static Attribute attribute(String name, DataType type) {
        return new AttributeReference(
            name, type, true, Metadata.empty(), NamedExpression$.MODULE$.newExprId(),
            (SEQ) PythonUtils.toSeq(new ArrayList()));
    }

    private static Attribute[] attributes(Attribute column) {
        String name = column.name();
        return new Attribute[] {
            attribute(name + "_count", DataTypes.LongType),
            attribute(name + "_least", column.dataType()),
            attribute(name + "_greatest", column.dataType()),
            attribute(name + "_total", DataTypes.LongType),
            attribute(name + "_total", DataTypes.DoubleType),
            attribute(name + "_count", DataTypes.DoubleType),
        };
    }

    /** Tells whether figures answer all aggregates in expressions, and notes their columns. */
    private boolean fit(SEQ expressions) {
        for (int i = 0; i < expressions.size(); i++) {
            Expression expression = (Expression) expressions.apply(i);
            boolean fits = expression instanceof AggregateExpression
                ? fits((AggregateExpression) expression) : fit((SEQ) expression.children());
            if (!fits) return false;
        }
        return true;
    }

    private boolean fits(AggregateExpression one) {
        AggregateFunction function = one.aggregateFunction();
        SEQ children = (SEQ) function.children();
        if (one.filter().isDefined() || children.size() != 1) return false;
        Expression child = (Expression) children.apply(0);
        if (!isData(child)) {
            return one.isDistinct() || function instanceof Min || function instanceof Max
                || function instanceof Count;
        }
        DataType type = child.dataType();
        boolean whole = type instanceof ByteType || type instanceof ShortType
            || type instanceof IntegerType || type instanceof LongType;
        boolean decimal = type instanceof DecimalType
            && ((DecimalType) type).precision() <= MOST_DIGITS;
        boolean known = function instanceof Count || function instanceof Min || function instanceof Max;
        boolean fits = !one.isDistinct() && (known && (whole || decimal || type instanceof DateType)
            || function instanceof Sum && (whole || decimal) || function instanceof Average && whole);
        if (!fits) return false;
        if (at(child) < 0) columns.add(child);
        if (function instanceof Average) averaged.add(child);
        return true;
    }

    /** Tells whether an expression is a column of the table's files. */
    private boolean isData(Expression expression) {
        return expression instanceof Attribute && leaf.outputSet().contains((Attribute) expression)
            && !partition.contains((Attribute) expression);
    }

    /** Returns the position of a column; negative if no figure of it is needed. */
    private int at(Expression column) {
        for (int i = 0; i < columns.size(); i++) {
            if (((Attribute) columns.get(i)).exprId().equals(((Attribute) column).exprId())) return i;
        }
        return -1;
    }

    /** Tells whether nothing but those aggregates uses columns of files. */
    private boolean needsNoValues() {
        AttributeSet used = beside(aggregate.aggregateExpressions());
        for (int i = 0; i < aggregate.groupingExpressions().size(); i++) {
            Expression key = (Expression) aggregate.groupingExpressions().apply(i);
            used = used.$plus$plus(key.references());
        }
        LogicalPlan below = aggregate.child();
        while (below != leaf) {
            used = used.$plus$plus(
                below instanceof Project ? changed((Project) below) : below.references());
            below = (LogicalPlan) below.children().apply(0);
        }
        return used.intersect(leaf.outputSet()).subsetOf(partition);
    }

    /** Returns what expressions use beside the columns whose figures are their aggregates' answers. */
    private AttributeSet beside(SEQ expressions) {
        AttributeSet used = none();
        for (int i = 0; i < expressions.size(); i++) {
            Expression one = (Expression) expressions.apply(i);
            SEQ children = (SEQ) one.children();
            if (one instanceof AggregateExpression) {
                Expression child = (Expression) ((SEQ)
                    ((AggregateExpression) one).aggregateFunction().children()).apply(0);
                if (!isData(child)) used = used.$plus$plus(child.references());
            } else {
                used = used.$plus$plus(children.size() == 0 ? one.references() : beside(children));
            }
        }
        return used;
    }

    /** Returns what a projection uses beside the columns that it merely passes on. */
    private static AttributeSet changed(Project project) {
        AttributeSet used = none();
        for (int i = 0; i < project.projectList().size(); i++) {
            Expression one = (Expression) project.projectList().apply(i);
            if (!(one instanceof Attribute)) used = used.$plus$plus(one.references());
        }
        return used;
    }

    private static AttributeSet none() {
        return org.apache.spark.sql.catalyst.expressions.AttributeSet$.MODULE$.empty();
    }

    private List output() {
        List output = new ArrayList();
        for (int i = 0; i < leaf.output().size(); i++) {
            Attribute column = (Attribute) leaf.output().apply(i);
            if (partition.contains(column)) output.add(column);
        }
        output.addAll(told());
        return output;
    }

    private List told() {
        List told = new ArrayList(Collections.singletonList(rows));
        for (int i = 0; i < figures.size(); i++) {
            for (Attribute one : (Attribute[]) figures.get(i)) told.add(one);
        }
        return told;
    }

    /** Returns the partitions that pass, with their figures; null if none does, or one is not certain. */
    private List rows(PartitionFigures told) {
        PartitionValues values = index.values();
        if (values.rows.length != told.rows.length) return null;
        StructType schema = index.partitionSchema();
        List output = output();
        int width = output.size() - told().size();
        boolean[] passing = values.passing(conditions.filters);
        double[] sums = new double[columns.size()];
        double[] sizes = new double[columns.size()];
        List rows = new ArrayList();
        boolean any = false;
        for (int i = 0; i < passing.length; i++) {
            if (!passing[i]) continue;
            any = true;
            if (told.rows[i] < 0) return null;
            if (told.rows[i] == 0) continue;
            Object[] row = new Object[output.size()];
            for (int j = 0; j < width; j++) {
                int place = schema.fieldIndex(((Attribute) output.get(j)).name());
                row[j] = values.rows[i].get(place, schema.fields()[place].dataType());
            }
            row[width] = Long.valueOf(told.rows[i]);
            for (int j = 0; j < columns.size(); j++) {
                if (!told.isCertain(j, i)) return null;
                long count = told.of(j, PartitionFigures.COUNT, i);
                long least = told.of(j, PartitionFigures.LEAST, i);
                long greatest = told.of(j, PartitionFigures.GREATEST, i);
                long total = told.of(j, PartitionFigures.TOTAL, i);
                sums[j] += Math.abs((double) total);
                sizes[j] += Math.max(Math.abs((double) least), Math.abs((double) greatest)) * count;
                int at = width + 1 + j * ((Attribute[]) figures.get(j)).length;
                row[at] = Long.valueOf(count);
                row[at + 5] = Double.valueOf(count);
                if (count == 0) continue;
                DataType type = ((Attribute) columns.get(j)).dataType();
                row[at + 1] = value(least, type);
                row[at + 2] = value(greatest, type);
                row[at + 3] = Long.valueOf(total);
                row[at + 4] = Double.valueOf(total);
            }
            rows.add(new GenericInternalRow(row));
        }
        for (int j = 0; j < columns.size(); j++) {
            if (sums[j] > MOST) return null;
            boolean inDoubles = averaged.contains(columns.get(j));
            if (inDoubles && sizes[j] > MOST_IN_DOUBLES) return null;
        }
        // A scan of no partition opens no file either.
        return any ? rows : null;
    }

    private static Object value(long number, DataType type) {
        if (type instanceof ByteType) return Byte.valueOf((byte) number);
        if (type instanceof ShortType) return Short.valueOf((short) number);
        if (type instanceof IntegerType || type instanceof DateType) return Integer.valueOf((int) number);
        if (type instanceof LongType) return Long.valueOf(number);
        DecimalType decimal = (DecimalType) type;
        return new Decimal().set(number, decimal.precision(), decimal.scale());
    }

    /** Puts the partitions in place of the scan, and lets their figures pass. */
    private final class Replacing extends AbstractPartialFunction {
        private final LogicalPlan in;

        Replacing(LogicalPlan in) {
            this.in = in;
        }

        @Override
        public boolean isDefinedAt(Object node) {
            return node == leaf
                || node instanceof Project && !((Project) node).outputSet().contains(rows);
        }

        @Override
        public Object applyOrElse(Object node, Function1 other) {
            if (node == leaf) return in;
            if (!isDefinedAt(node)) return other.apply(node);
            Project project = (Project) node;
            List list = new ArrayList();
            for (int i = 0; i < project.projectList().size(); i++) {
                Object one = project.projectList().apply(i);
                if (!isData((Expression) one)) list.add(one);
            }
            list.addAll(told());
            return new Project((SEQ) PythonUtils.toSeq(list), project.child());
        }
    }

    /** Replaces aggregates of rows with those of the partitions' figures. */
    private final class Telling extends AbstractPartialFunction {
        @Override
        public boolean isDefinedAt(Object node) {
            if (!(node instanceof AggregateExpression)) return false;
            AggregateFunction function = ((AggregateExpression) node).aggregateFunction();
            Expression child = (Expression) ((SEQ) function.children()).apply(0);
            return isData(child)
                || function instanceof Count && !((AggregateExpression) node).isDistinct()
                    && !figures(child);
        }

        /** Tells whether an expression is one of the figures themselves. */
        private boolean figures(Expression child) {
            return child instanceof Attribute && told().contains(child);
        }

        @Override
        public Object applyOrElse(Object node, Function1 other) {
            if (!isDefinedAt(node)) return other.apply(node);
            AggregateFunction function = ((AggregateExpression) node).aggregateFunction();
            Expression child = (Expression) ((SEQ) function.children()).apply(0);
            Expression zero = new Literal(Long.valueOf(0), DataTypes.LongType);
            if (!isData(child)) {
                return orZero(child.nullable() ? new If(new IsNull(child), zero, rows) : rows);
            }
            Attribute[] told = (Attribute[]) FigureAnswers.this.figures.get(at(child));
            if (function instanceof Count) return orZero(told[0]);
            if (function instanceof Min) return whole(function, told[1]);
            if (function instanceof Max) return whole(function, told[2]);
            if (function instanceof Sum) {
                Expression sum = sum(told[3]);
                if (!(child.dataType() instanceof DecimalType)) return sum;
                DecimalType type = (DecimalType) function.dataType();
                return new MakeDecimal(sum, type.precision(), type.scale());
            }
            Expression none = new Literal(null, DataTypes.DoubleType);
            Expression count = sum(told[5]);
            Expression some = new GreaterThan(
                count, new Literal(Double.valueOf(0), DataTypes.DoubleType));
            return new If(some, new Divide(sum(told[4]), count), none);
        }

        private Expression orZero(Expression counts) {
            List parts = new ArrayList();
            parts.add(sum(counts));
            parts.add(new Literal(Long.valueOf(0), DataTypes.LongType));
            return new Coalesce((SEQ) PythonUtils.toSeq(parts));
        }

        private Expression sum(Expression values) {
            return new Sum(values).toAggregateExpression();
        }

        private Expression whole(AggregateFunction function, Expression values) {
            AggregateFunction changed = (AggregateFunction) function.withNewChildren(
                (SEQ) PythonUtils.toSeq(Collections.singletonList(values)));
            return changed.toAggregateExpression();
        }
    }
}
