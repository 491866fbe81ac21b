package windrow;

import java.io.Serializable;
import org.apache.spark.rdd.InputFileBlockHolder;
import org.apache.spark.rdd.RDD;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.UnsafeProjection;
import org.apache.spark.sql.catalyst.expressions.UnsafeProjection$;
import org.apache.spark.sql.execution.metric.SQLMetric;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.vectorized.ColumnarBatch;
import org.apache.spark.unsafe.types.UTF8String;
import scala.collection.AbstractIterator;
import scala.collection.Iterator;
import scala.reflect.ClassTag$;
import scala.runtime.AbstractFunction1;

/** What tasks do with the rows of a scan before Spark's other nodes see them. */
final class ScannedRows {
    private ScannedRows() {}

    /** Returns batches or rows, counted when they are read. */
    static RDD counted(RDD rows, SQLMetric count) {
        return rows.mapPartitions(new Counting(count), true, ClassTag$.MODULE$.Any());
    }

    /**
     * Returns rows in the form that Spark's other nodes take.
     *
     * @param rows Rows with these columns; if they are named, followed by the path of each row's
     *     file, and the first byte and the length of the block.
     */
    static RDD projected(RDD rows, StructType columns, boolean named, SQLMetric count) {
        return rows.mapPartitions(
            new Projecting(columns, named, count), true,
            ClassTag$.MODULE$.apply(InternalRow.class));
    }

    private static final class Counting extends AbstractFunction1 implements Serializable {
        private final SQLMetric count;

        Counting(SQLMetric count) {
            this.count = count;
        }

        @Override
        public Object apply(Object rows) {
            return new Counted((Iterator) rows, count);
        }
    }

    private static final class Counted extends AbstractIterator {
        private final Iterator rows;
        private final SQLMetric count;

        Counted(Iterator rows, SQLMetric count) {
            this.rows = rows;
            this.count = count;
        }

        @Override
        public boolean hasNext() {
            return rows.hasNext();
        }

        @Override
        public Object next() {
            Object next = rows.next();
            count.add(next instanceof ColumnarBatch ? ((ColumnarBatch) next).numRows() : 1L);
            return next;
        }
    }

    private static final class Projecting extends AbstractFunction1 implements Serializable {
        private final StructType columns;
        private final boolean named;
        private final SQLMetric count;

        Projecting(StructType columns, boolean named, SQLMetric count) {
            this.columns = columns;
            this.named = named;
            this.count = count;
        }

        @Override
        public Object apply(Object rows) {
            return new Projected((Iterator) rows, columns, named, count);
        }
    }

    private static final class Projected extends AbstractIterator {
        private final Iterator rows;
        private final UnsafeProjection projection;
        private final int width;
        private final boolean named;
        private final SQLMetric count;
        private UTF8String file;
        private long start;

        Projected(Iterator rows, StructType columns, boolean named, SQLMetric count) {
            this.rows = rows;
            this.projection = UnsafeProjection$.MODULE$.create(columns);
            this.width = columns.fields().length;
            this.named = named;
            this.count = count;
        }

        @Override
        public boolean hasNext() {
            boolean more = rows.hasNext();
            if (!more && named) InputFileBlockHolder.unset();
            return more;
        }

        @Override
        public Object next() {
            InternalRow row = (InternalRow) rows.next();
            if (named) name(row);
            count.add(1L);
            return projection.apply(row);
        }

        /** Tells input_file_name() and its like where the row is from. */
        private void name(InternalRow row) {
            UTF8String path = row.getUTF8String(width);
            long first = row.getLong(width + 1);
            if (path.equals(file) && first == start) return;
            file = path.copy();
            start = first;
            InputFileBlockHolder.set(path.toString(), first, row.getLong(width + 2));
        }
    }
}
