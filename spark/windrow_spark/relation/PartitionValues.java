package windrow;

import java.io.ByteArrayInputStream;
import java.io.IOException;
import org.apache.arrow.memory.BufferAllocator;
import org.apache.arrow.vector.BigIntVector;
import org.apache.arrow.vector.VectorSchemaRoot;
import org.apache.arrow.vector.ipc.ArrowStreamReader;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.BasePredicate;
import org.apache.spark.sql.catalyst.expressions.BoundReference;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.Predicate$;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.util.ArrowUtils$;
import org.apache.spark.sql.vectorized.ArrowColumnVector;
import org.apache.spark.sql.vectorized.ColumnVector;
import org.apache.spark.sql.vectorized.ColumnarBatch;
import scala.Function1;
import scala.runtime.AbstractPartialFunction;

/** The distinct partitions of a snapshot, on which Spark itself evaluates conditions. */
public final class PartitionValues {
    final StructType columns;
    /** The values of each partition; a partition's number is its index. */
    final InternalRow[] rows;
    final long[] sizeInBytes;
    /** Rows of each partition; negative if not known. */
    final long[] rowCounts;

    PartitionValues(StructType columns, byte[] stream) throws IOException {
        this.columns = columns;
        BufferAllocator memory = allocator();
        ArrowStreamReader reader = new ArrowStreamReader(new ByteArrayInputStream(stream), memory);
        try {
            reader.loadNextBatch();
            VectorSchemaRoot batch = reader.getVectorSchemaRoot();
            this.rows = rows(batch, columns);
            this.sizeInBytes = new long[rows.length];
            this.rowCounts = new long[rows.length];
            BigIntVector sizes = (BigIntVector) batch.getVector(columns.fields().length);
            BigIntVector counts = (BigIntVector) batch.getVector(columns.fields().length + 1);
            for (int i = 0; i < rows.length; i++) {
                sizeInBytes[i] = sizes.get(i);
                rowCounts[i] = counts.isNull(i) ? -1L : counts.get(i);
            }
        } finally {
            reader.close();
            memory.close();
        }
    }

    /** Returns the rows of an Arrow stream of one batch. */
    static InternalRow[] rows(byte[] stream, StructType columns) throws IOException {
        BufferAllocator memory = allocator();
        ArrowStreamReader reader = new ArrowStreamReader(new ByteArrayInputStream(stream), memory);
        try {
            reader.loadNextBatch();
            return rows(reader.getVectorSchemaRoot(), columns);
        } finally {
            reader.close();
            memory.close();
        }
    }

    private static InternalRow[] rows(VectorSchemaRoot batch, StructType columns) {
        ColumnVector[] vectors = new ColumnVector[columns.fields().length];
        for (int i = 0; i < vectors.length; i++) {
            vectors[i] = new ArrowColumnVector(batch.getVector(i));
        }
        ColumnarBatch rows = new ColumnarBatch(vectors, batch.getRowCount());
        InternalRow[] copies = new InternalRow[batch.getRowCount()];
        for (int i = 0; i < copies.length; i++) copies[i] = rows.getRow(i).copy();
        return copies;
    }

    static BufferAllocator allocator() {
        return ArrowUtils$.MODULE$.rootAllocator().newChildAllocator("windrow", 0L, Long.MAX_VALUE);
    }

    /** Marks the partitions for which all conditions are true. */
    boolean[] passing(SEQ filters) {
        return passing(filters, columns, rows);
    }

    /** Marks the rows of partition values for which all conditions are true. */
    static boolean[] passing(SEQ filters, StructType columns, InternalRow[] rows) {
        BasePredicate[] conditions = new BasePredicate[filters.size()];
        for (int i = 0; i < conditions.length; i++) {
            Expression filter = (Expression) filters.apply(i);
            conditions[i] = Predicate$.MODULE$.createInterpreted(
                (Expression) filter.transform(new Binding(columns)));
            conditions[i].initialize(0);
        }
        boolean[] passing = new boolean[rows.length];
        for (int i = 0; i < rows.length; i++) {
            boolean passes = true;
            for (int j = 0; passes && j < conditions.length; j++) passes = conditions[j].eval(rows[i]);
            passing[i] = passes;
        }
        return passing;
    }

    /** Returns an expression's value for each partition that is marked. */
    Object[] evaluated(Expression expression, boolean[] marks) {
        Expression bound = (Expression) expression.transform(new Binding(columns));
        Object[] results = new Object[rows.length];
        for (int i = 0; i < rows.length; i++) if (marks[i]) results[i] = bound.eval(rows[i]);
        return results;
    }

    /** Reads partition values for Python. */
    public static final class Reading {
        public InternalRow[] rows(byte[] stream, String schema) throws IOException {
            return PartitionValues.rows(stream, (StructType) DataType.fromJson(schema));
        }
    }

    /** Replaces partition columns with their positions in a row of partition values. */
    private static final class Binding extends AbstractPartialFunction {
        private final StructType columns;

        Binding(StructType columns) {
            this.columns = columns;
        }

        @Override
        public boolean isDefinedAt(Object node) {
            return node instanceof Attribute;
        }

        @Override
        public Object applyOrElse(Object node, Function1 other) {
            if (!isDefinedAt(node)) return other.apply(node);
            int at = columns.fieldIndex(((Attribute) node).name());
            return new BoundReference(at, columns.fields()[at].dataType(), true);
        }
    }
}
