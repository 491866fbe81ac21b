package windrow;

import java.io.Serializable;
import java.math.BigDecimal;
import java.math.BigInteger;
import java.util.Arrays;
import org.apache.spark.rdd.RDD;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.types.BinaryType;
import org.apache.spark.sql.types.BooleanType;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DateType;
import org.apache.spark.sql.types.Decimal;
import org.apache.spark.sql.types.NumericType;
import org.apache.spark.sql.types.StringType;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.types.TimestampNTZType;
import org.apache.spark.sql.types.TimestampType;
import org.apache.spark.sql.vectorized.ColumnVector;
import org.apache.spark.sql.vectorized.ColumnarArray;
import org.apache.spark.sql.vectorized.ColumnarBatch;
import org.apache.spark.sql.vectorized.ColumnarMap;
import org.apache.spark.unsafe.Platform;
import org.apache.spark.unsafe.types.UTF8String;
import scala.collection.AbstractIterator;
import scala.collection.Iterator;
import scala.reflect.ClassTag$;
import scala.runtime.AbstractFunction1;

/** Reads rows in place from batches that `packing.py` packed. Also runs on executors. */
public final class PackedRows {
    private static final int ABSENT = -1;

    /** Returns the rows of packed batches, given the JSON of their columns. */
    public RDD unpacked(RDD batches, String columns) {
        return batches.mapPartitions(
            new Unpacking((StructType) DataType.fromJson(columns)), true,
            ClassTag$.MODULE$.apply(InternalRow.class));
    }

    /** Returns packed batches as Spark's, given the JSON of their columns. */
    public RDD batches(RDD batches, String columns) {
        return batches.mapPartitions(
            new Batching((StructType) DataType.fromJson(columns)), true,
            ClassTag$.MODULE$.apply(ColumnarBatch.class));
    }

    /** Tells whether a batch can hold a column of this type. */
    static boolean canHold(DataType type) {
        return type instanceof NumericType || type instanceof StringType
            || type instanceof BooleanType || type instanceof BinaryType
            || type instanceof DateType || type instanceof TimestampType
            || type instanceof TimestampNTZType;
    }

    private static final class Batching extends AbstractFunction1 implements Serializable {
        private final StructType columns;

        Batching(StructType columns) {
            this.columns = columns;
        }

        @Override
        public Object apply(Object batches) {
            return new Batches((Iterator) batches, columns.fields());
        }
    }

    private static final class Batches extends AbstractIterator {
        private final Iterator batches;
        private final StructField[] columns;

        Batches(Iterator batches, StructField[] columns) {
            this.batches = batches;
            this.columns = columns;
        }

        @Override
        public boolean hasNext() {
            return batches.hasNext();
        }

        @Override
        public Object next() {
            return unpacked((byte[]) batches.next(), columns);
        }
    }

    private static final class Unpacking extends AbstractFunction1 implements Serializable {
        private final StructType columns;

        Unpacking(StructType columns) {
            this.columns = columns;
        }

        @Override
        public Object apply(Object batches) {
            return new Rows((Iterator) batches, columns.fields());
        }
    }

    private static final class Rows extends AbstractIterator {
        private static final java.util.Iterator NONE = new java.util.ArrayList().iterator();

        private final Iterator batches;
        private final StructField[] columns;
        private java.util.Iterator rows = NONE;

        Rows(Iterator batches, StructField[] columns) {
            this.batches = batches;
            this.columns = columns;
        }

        @Override
        public boolean hasNext() {
            while (!rows.hasNext()) {
                if (!batches.hasNext()) return false;
                rows = unpacked((byte[]) batches.next(), columns).rowIterator();
            }
            return true;
        }

        @Override
        public Object next() {
            return rows.next();
        }
    }

    private static ColumnarBatch unpacked(byte[] batch, StructField[] columns) {
        ColumnVector[] vectors = new ColumnVector[columns.length];
        int next = 4 + 16 * columns.length;
        for (int i = 0; i < columns.length; i++) {
            int[] at = new int[3];
            for (int j = 0; j < 3; j++) {
                int size = number(batch, 4 + 16 * i + 4 * (j + 1));
                at[j] = size < 0 ? ABSENT : next;
                next += Math.max(0, size);
            }
            vectors[i] = new Column(
                columns[i].dataType(), batch, number(batch, 4 + 16 * i), at[0], at[1], at[2]);
        }
        return new ColumnarBatch(vectors, number(batch, 0));
    }

    private static int number(byte[] batch, int at) {
        return Platform.getInt(batch, Platform.BYTE_ARRAY_OFFSET + at);
    }

    /** One of Arrow's arrays within a batch. */
    private static final class Column extends ColumnVector {
        private static final int LONGEST_LONG = 18;

        private final byte[] batch;
        // The number of bits before the first row's bit, wherever rows have bits.
        private final int bit;
        private final int validity;
        private final int offsets;
        private final int values;
        private final long base;

        Column(DataType type, byte[] batch, int bit, int validity, int offsets, int values) {
            super(type);
            this.batch = batch;
            this.bit = bit;
            this.validity = validity;
            this.offsets = offsets;
            this.values = values;
            this.base = Platform.BYTE_ARRAY_OFFSET + values;
        }

        private boolean isSet(int bits, int row) {
            int place = bit + row;
            return (batch[bits + (place >> 3)] >> (place & 7) & 1) == 1;
        }

        @Override
        public boolean hasNull() {
            return validity != ABSENT;
        }

        @Override
        public int numNulls() {
            throw new UnsupportedOperationException();
        }

        @Override
        public boolean isNullAt(int row) {
            return validity != ABSENT && !isSet(validity, row);
        }

        @Override
        public boolean getBoolean(int row) {
            return isSet(values, row);
        }

        @Override
        public byte getByte(int row) {
            return batch[values + row];
        }

        @Override
        public short getShort(int row) {
            return Platform.getShort(batch, base + 2L * row);
        }

        @Override
        public int getInt(int row) {
            return Platform.getInt(batch, base + 4L * row);
        }

        @Override
        public long getLong(int row) {
            return Platform.getLong(batch, base + 8L * row);
        }

        @Override
        public float getFloat(int row) {
            return Platform.getFloat(batch, base + 4L * row);
        }

        @Override
        public double getDouble(int row) {
            return Platform.getDouble(batch, base + 8L * row);
        }

        @Override
        public Decimal getDecimal(int row, int precision, int scale) {
            if (precision <= LONGEST_LONG) {
                return Decimal.createUnsafe(
                    Platform.getLong(batch, base + 16L * row), precision, scale);
            }
            byte[] unscaled = new byte[16];
            for (int i = 0; i < 16; i++) unscaled[i] = batch[values + 16 * row + 15 - i];
            return Decimal.apply(new BigDecimal(new BigInteger(unscaled), scale), precision, scale);
        }

        // Offsets may belong to a longer array, whose earlier bytes are not in the batch.
        private int start(int row) {
            return values + number(batch, offsets + 4 * row) - number(batch, offsets);
        }

        @Override
        public UTF8String getUTF8String(int row) {
            int start = start(row);
            return UTF8String.fromBytes(batch, start, start(row + 1) - start);
        }

        @Override
        public byte[] getBinary(int row) {
            return Arrays.copyOfRange(batch, start(row), start(row + 1));
        }

        @Override
        public ColumnarArray getArray(int row) {
            throw new UnsupportedOperationException();
        }

        @Override
        public ColumnarMap getMap(int row) {
            throw new UnsupportedOperationException();
        }

        @Override
        public ColumnVector getChild(int child) {
            throw new UnsupportedOperationException();
        }

        @Override
        public void close() {}
    }
}
