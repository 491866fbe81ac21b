package windrow;

import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.WeakHashMap;
import java.util.function.BiFunction;
import org.apache.spark.api.python.PythonUtils;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.SparkSessionExtensions;
import org.apache.spark.sql.catalyst.expressions.AttributeSet;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.plans.logical.Filter;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.Project;
import org.apache.spark.sql.execution.FileSourceScanExec;
import org.apache.spark.sql.execution.FilterExec;
import org.apache.spark.sql.execution.SparkPlan;
import org.apache.spark.sql.execution.SparkStrategy;
import org.apache.spark.sql.execution.datasources.FileFormat;
import org.apache.spark.sql.execution.datasources.FileSourceStrategy$;
import org.apache.spark.sql.execution.datasources.HadoopFsRelation;
import org.apache.spark.sql.execution.datasources.LogicalRelation;
import org.apache.spark.sql.sources.BaseRelation;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.StructType;
import scala.Function1;
import scala.Option;
import scala.runtime.AbstractFunction1;
import scala.runtime.AbstractPartialFunction;

/** Plans scans of our tables as Spark plans those of files, up to the node that reads them. */
public final class TableStrategy extends SparkStrategy {
    /** Makes relations for Python, and lets sessions plan them. */
    public static final class Factory {
        private static final Map PREPARED = new WeakHashMap();
        private BiFunction python;

        /** Sets the function that plans scans. */
        public void answerBy(BiFunction python) {
            this.python = python;
        }

        /** Returns a table's snapshot as one of Spark's own tables. */
        public HadoopFsRelation relation(
                SparkSession session, FileFormat format, Map options, String schema,
                List partitionColumns, boolean whole, List bucketColumns, int buckets,
                Number sizeInBytes, String label, String pin) {
            StructType columns = (StructType) DataType.fromJson(schema);
            StructType partition = new StructType();
            for (int i = 0; i < partitionColumns.size(); i++) {
                partition = partition.add(columns.apply((String) partitionColumns.get(i)));
            }
            StructType data = new StructType();
            for (int i = 0; i < columns.fields().length; i++) {
                // Spark appends partition columns, unless they have a place among the others.
                boolean last = i >= columns.fields().length - partitionColumns.size();
                if (!partitionColumns.contains(columns.fields()[i].name())) {
                    data = data.add(columns.fields()[i]);
                } else if (!last) {
                    data = columns;
                    break;
                }
            }
            return new HadoopFsRelation(
                new TableIndex(
                    pin, label, columns, partition, whole, bucketColumns, buckets,
                    sizeInBytes.longValue(), python),
                partition, data, Option.empty(), format,
                (scala.collection.immutable.Map) PythonUtils.toScalaMap(options), session);
        }

        /** Returns a relation of Spark's, of the same columns, with a table's snapshot as its files. */
        public HadoopFsRelation inPlaceOf(
                HadoopFsRelation theirs, FileFormat format, Map options, String schema,
                Number sizeInBytes, String label, String pin) {
            return new HadoopFsRelation(
                new TableIndex(
                    pin, label, (StructType) DataType.fromJson(schema), theirs.partitionSchema(),
                    true, new ArrayList(), 0, sizeInBytes.longValue(), python),
                theirs.partitionSchema(), theirs.dataSchema(), theirs.bucketSpec(), format,
                (scala.collection.immutable.Map) PythonUtils.toScalaMap(options),
                theirs.sparkSession());
        }

        /** From now on, the sessions that share these extensions plan our scans. */
        public void extend(SparkSessionExtensions extensions) {
            synchronized (PREPARED) {
                if (PREPARED.put(extensions, Boolean.TRUE) != null) return;
            }
            extensions.injectOptimizerRule(new Always(new NewestSnapshots()));
            extensions.injectPlannerStrategy(new Always(new TableStrategy()));
            extensions.injectPreCBORule(new Always(new InventoryAnswers()));
            extensions.injectPreCBORule(new Always(new BucketUse()));
            extensions.injectPreCBORule(new WithLastRules(new TableHints()));
        }
    }

    /** Gives each session the same strategy or rule. */
    private static class Always extends AbstractFunction1 {
        private final Object value;

        Always(Object value) {
            this.value = value;
        }

        @Override
        public Object apply(Object session) {
            return value;
        }
    }

    /** Spark asks for this before it looks for the rules that a session itself was given. */
    private static final class WithLastRules extends Always {
        WithLastRules(Object value) {
            super(value);
        }

        @Override
        public Object apply(Object session) {
            ScanLimits.addTo((SparkSession) session);
            return super.apply(session);
        }
    }

    @Override
    public SEQ apply(LogicalPlan plan) {
        List made = new ArrayList();
        SparkPlan insert = TableInsert.of(plan);
        if (insert != null) {
            made.add(insert);
            return seq(made);
        }
        LogicalRelation leaf = leafOf(plan);
        if (leaf == null) return seq(made);
        // Another node need not apply these, as the join does.
        List runtime = new ArrayList();
        SEQ plans = FileSourceStrategy$.MODULE$.apply(RuntimeFilters.removed(plan, leaf, runtime));
        if (plans.size() == 0) return seq(made);
        SparkPlan theirs = (SparkPlan) plans.apply(0);
        made.add(theirs.transform(new Replacing(leaf, used(theirs), isFiltered(theirs), runtime)));
        return seq(made);
    }

    /** Returns our relation below projections and filters; null if there is none. */
    static LogicalRelation leafOf(LogicalPlan plan) {
        while (plan instanceof Project || plan instanceof Filter) {
            plan = (LogicalPlan) plan.children().apply(0);
        }
        return isOurs(plan) ? (LogicalRelation) plan : null;
    }

    static boolean isOurs(Object node) {
        if (!(node instanceof LogicalRelation)) return false;
        BaseRelation relation = ((LogicalRelation) node).relation();
        return relation instanceof HadoopFsRelation
            && ((HadoopFsRelation) relation).location() instanceof TableIndex;
    }

    /** Returns the columns that are used above the scan: the scan has all partition columns. */
    private static AttributeSet used(SparkPlan plan) {
        AttributeSet used = plan.outputSet();
        while (!(plan instanceof FileSourceScanExec)) {
            used = used.$plus$plus(plan.references());
            plan = (SparkPlan) plan.children().apply(0);
        }
        return used;
    }

    private static boolean isFiltered(SparkPlan plan) {
        while (!(plan instanceof FileSourceScanExec)) {
            if (plan instanceof FilterExec) return true;
            plan = (SparkPlan) plan.children().apply(0);
        }
        return false;
    }

    private static SEQ seq(List list) {
        return (SEQ) PythonUtils.toSeq(list);
    }

    /** Replaces Spark's scan with ours. */
    private static final class Replacing extends AbstractPartialFunction {
        private final LogicalRelation leaf;
        private final AttributeSet used;
        private final boolean filtered;
        private final List runtime;

        Replacing(LogicalRelation leaf, AttributeSet used, boolean filtered, List runtime) {
            this.leaf = leaf;
            this.used = used;
            this.filtered = filtered;
            this.runtime = runtime;
        }

        @Override
        public boolean isDefinedAt(Object node) {
            return node instanceof FileSourceScanExec;
        }

        @Override
        public Object applyOrElse(Object node, Function1 other) {
            if (!isDefinedAt(node)) return other.apply(node);
            FileSourceScanExec scan = (FileSourceScanExec) node;
            List columns = new ArrayList();
            for (int i = 0; i < scan.output().size(); i++) {
                Attribute column = (Attribute) scan.output().apply(i);
                if (used.contains(column)) columns.add(column);
            }
            List dataFilters = new ArrayList(runtime);
            for (int i = 0; i < scan.dataFilters().size(); i++) {
                dataFilters.add(scan.dataFilters().apply(i));
            }
            return new TableScan(
                leaf, seq(columns), scan.output(), scan.partitionFilters(), seq(dataFilters),
                !filtered, BucketUse.buckets(leaf, columns));
        }
    }
}
