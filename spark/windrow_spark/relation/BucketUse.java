package windrow;

import java.io.Serializable;
import java.util.ArrayList;
import java.util.List;
import org.apache.spark.api.python.PythonUtils;
import org.apache.spark.rdd.RDD;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.BoundReference;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.Literal;
import org.apache.spark.sql.catalyst.expressions.Murmur3Hash;
import org.apache.spark.sql.catalyst.expressions.Pmod;
import org.apache.spark.sql.catalyst.planning.ExtractEquiJoinKeys$;
import org.apache.spark.sql.catalyst.plans.logical.Aggregate;
import org.apache.spark.sql.catalyst.plans.logical.Join;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.rules.Rule;
import org.apache.spark.sql.catalyst.trees.TreeNode;
import org.apache.spark.sql.execution.datasources.LogicalRelation;
import org.apache.spark.sql.internal.SQLConf;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.vectorized.ColumnarBatch;
import scala.Function1;
import scala.Option;
import scala.Product;
import scala.collection.AbstractIterator;
import scala.collection.Iterator;
import scala.reflect.ClassTag$;
import scala.runtime.AbstractFunction2;
import scala.runtime.AbstractPartialFunction;

/**
 * Reads tables by their buckets where that spares a shuffle: below joins by exactly the bucket
 * columns, and aggregations by these and perhaps others. Elsewhere tasks of whole buckets would
 * only be few.
 */
public final class BucketUse extends Rule {
    @Override
    public TreeNode apply(TreeNode plan) {
        return SQLConf.get().bucketingEnabled() ? plan.transform(new Using()) : plan;
    }

    private static final class Using extends AbstractPartialFunction {
        @Override
        public boolean isDefinedAt(Object node) {
            return node instanceof Join || node instanceof Aggregate;
        }

        @Override
        public Object applyOrElse(Object node, Function1 other) {
            LogicalPlan plan = null;
            if (node instanceof Aggregate) {
                Aggregate aggregate = (Aggregate) node;
                plan = using(aggregate, 0, aggregate.groupingExpressions(), false);
            } else if (node instanceof Join) {
                Option keys = ExtractEquiJoinKeys$.MODULE$.unapply((Join) node);
                if (keys.isDefined()) {
                    Product parts = (Product) keys.get();
                    plan = using((Join) node, 0, (SEQ) parts.productElement(1), true);
                    plan = using(plan, 1, (SEQ) parts.productElement(2), true);
                }
            }
            return plan == null || plan == node ? other.apply(node) : plan;
        }

        private static LogicalPlan using(LogicalPlan plan, int side, SEQ keys, boolean exactly) {
            LogicalPlan child = (LogicalPlan) plan.children().apply(side);
            LogicalRelation leaf = TableStrategy.leafOf(child);
            if (leaf == null) return plan;
            TableIndex index = TableHints.indexOf(leaf);
            List names = index.bucketColumns();
            if (index.inBuckets || names.isEmpty() || exactly && keys.size() != names.size()) return plan;
            List columns = new ArrayList();
            for (int i = 0; i < keys.size(); i++) {
                if (keys.apply(i) instanceof Attribute
                    && leaf.outputSet().contains((Attribute) keys.apply(i))) columns.add(keys.apply(i));
            }
            if (keys(names, (SEQ) PythonUtils.toSeq(columns)) == null) return plan;
            LogicalPlan bucketed = TableHints.with(leaf, index.bucketed());
            List children = new ArrayList();
            for (int i = 0; i < plan.children().size(); i++) {
                children.add(i == side ? child.transform(new TableHints.Replacing(leaf, bucketed))
                    : plan.children().apply(i));
            }
            return (LogicalPlan) plan.withNewChildren((SEQ) PythonUtils.toSeq(children));
        }
    }

    /** Returns by how many buckets a scan of these columns is read; 0 if by none. */
    static int buckets(LogicalRelation leaf, List columns) {
        TableIndex index = TableHints.indexOf(leaf);
        boolean fits = index.inBuckets && !index.names && index.limit == TableIndex.NO_LIMIT
            && index.isWhole()
            && keys(index.bucketColumns(), (SEQ) PythonUtils.toSeq(columns)) != null;
        return fits ? index.buckets() : 0;
    }

    /** Returns the columns with some names; null if one is missing. */
    static SEQ keys(List names, SEQ columns) {
        List keys = new ArrayList();
        for (int i = 0; i < names.size(); i++) {
            for (int j = 0; j < columns.size(); j++) {
                if (((Attribute) columns.apply(j)).name().equals(names.get(i))) {
                    keys.add(columns.apply(j));
                    break;
                }
            }
        }
        return keys.size() == names.size() ? (SEQ) PythonUtils.toSeq(keys) : null;
    }

    /** Fails a task that reads a row of another bucket: Hive hashes differently. */
    static RDD checked(RDD rows, SEQ keys, SEQ columns, int buckets, String table) {
        List bound = new ArrayList();
        for (int i = 0; i < keys.size(); i++) {
            Attribute key = (Attribute) keys.apply(i);
            for (int j = 0; j < columns.size(); j++) {
                if (((Attribute) columns.apply(j)).exprId().equals(key.exprId())) {
                    bound.add(new BoundReference(j, key.dataType(), true));
                }
            }
        }
        Expression bucket = new Pmod(
            new Murmur3Hash((SEQ) PythonUtils.toSeq(bound)),
            new Literal(Integer.valueOf(buckets), DataTypes.IntegerType));
        return rows.mapPartitionsWithIndex(
            new Checking(bucket, table), true, ClassTag$.MODULE$.Any());
    }

    private static final class Checking extends AbstractFunction2 implements Serializable {
        private final Expression bucket;
        private final String table;

        Checking(Expression bucket, String table) {
            this.bucket = bucket;
            this.table = table;
        }

        @Override
        public Object apply(Object number, Object rows) {
            return new Checked((Iterator) rows, ((Integer) number).intValue(), bucket, table);
        }
    }

    private static final class Checked extends AbstractIterator {
        private final Iterator rows;
        private final int number;
        private final Expression bucket;
        private final String table;

        Checked(Iterator rows, int number, Expression bucket, String table) {
            this.rows = rows;
            this.number = number;
            this.bucket = bucket;
            this.table = table;
        }

        @Override
        public boolean hasNext() {
            return rows.hasNext();
        }

        @Override
        public Object next() {
            Object next = rows.next();
            if (next instanceof InternalRow) {
                check((InternalRow) next);
            } else {
                java.util.Iterator all = ((ColumnarBatch) next).rowIterator();
                while (all.hasNext()) check((InternalRow) all.next());
            }
            return next;
        }

        private void check(InternalRow row) {
            if (((Integer) bucket.eval(row)).intValue() == number) return;
            throw new IllegalStateException(
                "a row of " + table + " is not in the bucket of Spark's hash, so its files are not "
                + "bucketed as Spark does: SET spark.sql.sources.bucketing.enabled=false");
        }
    }
}
