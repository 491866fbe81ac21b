package windrow;

import java.io.Closeable;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FSDataInputStream;
import org.apache.hadoop.fs.Path;
import org.apache.spark.TaskContext;
import org.apache.spark.TaskKilledException;
import org.apache.spark.broadcast.Broadcast;
import org.apache.spark.sql.execution.datasources.PartitionedFile;
import org.apache.spark.sql.types.Decimal;
import org.apache.spark.sql.vectorized.ColumnVector;
import org.apache.spark.sql.vectorized.ColumnarArray;
import org.apache.spark.sql.vectorized.ColumnarBatch;
import org.apache.spark.sql.vectorized.ColumnarMap;
import org.apache.spark.unsafe.types.UTF8String;
import org.apache.spark.util.SerializableConfiguration;
import scala.Function1;
import scala.Option;
import scala.collection.AbstractIterator;
import scala.collection.Iterator;

/**
 * The wanted rows of consecutive row groups of a pack, as batches or one by one. Also runs on
 * executors. Spark's reader returns all rows of row groups in their order, so their number is enough
 * to tell which is which; another number of rows than the driver's is an error.
 */
final class PackRows extends AbstractIterator implements Closeable {
    /** Where a file of Spark's has the seal that the driver has seen. */
    static final String SEAL = "windrow_pack_seal";
    /** Where a file of Spark's has an array of the numbers below. */
    static final String KEY = "windrow_pack_rows";
    /** Places there: the first row of the groups, the one after their last, and how many files begin. */
    static final int FIRST = 0;
    static final int END = 1;
    static final int FILES = 2;
    /** The seal's first byte. */
    static final int SEAL_AT = 3;
    /** The first wanted row, the one after the last that follows it, and so on. */
    static final int WANTED = 4;

    private final Iterator rows;
    private final long[] numbers;
    private final String name;
    private long row;
    private int at = WANTED;
    private Object next;

    private PackRows(Iterator rows, long[] numbers, String name) {
        this.rows = rows;
        this.numbers = numbers;
        this.name = name;
        this.row = numbers[FIRST];
    }

    /** Returns the numbers of a part of a pack; null if a file is no such part. */
    static long[] numbers(PartitionedFile file) {
        Option numbers = file.otherConstantMetadataColumnValues().get(KEY);
        return numbers.isDefined() ? (long[]) numbers.get() : null;
    }

    static long files(long[] numbers) {
        return numbers[FILES];
    }

    /**
     * Opens a part of a pack with Spark's own reader.
     *
     * @param settings Hadoop's, for remote packs; null for local ones.
     */
    static Iterator of(PartitionedFile file, Function1 reader, Broadcast settings) {
        String name = name(file.filePath().urlEncoded());
        Iterator rows = null;
        try {
            rows = (Iterator) reader.apply(file);
            // Not before the reader has opened the file, whose name may be that of another one by then.
            requireSeal(file, settings);
            return new PackRows(rows, numbers(file), name);
        } catch (Throwable error) {
            close(rows);
            throw unreadable(name, error);
        }
    }

    /** Fails if a pack is another one than the driver has opened, even one of the same size. */
    private static void requireSeal(PartitionedFile file, Broadcast settings) throws IOException {
        byte[] seal = ((String) file.otherConstantMetadataColumnValues().apply(SEAL))
            .getBytes(StandardCharsets.ISO_8859_1);
        byte[] now = new byte[seal.length];
        Configuration configuration = settings == null
            ? new Configuration(false) : ((SerializableConfiguration) settings.value()).value();
        Path path = PlannedFiles.path(file.filePath().urlEncoded());
        FSDataInputStream pack = path.getFileSystem(configuration).open(path);
        try {
            pack.readFully(numbers(file)[SEAL_AT], now);
        } finally {
            pack.close();
        }
        if (!Arrays.equals(seal, now)) throw new IOException("it has changed");
    }

    private static void close(Iterator rows) {
        try {
            if (rows instanceof Closeable) ((Closeable) rows).close();
        } catch (IOException error) {
            // The first error says more.
            return;
        }
    }

    /** Returns the name of a pack in messages. */
    static String name(String uri) {
        Path path = PlannedFiles.path(uri);
        return "file".equals(path.toUri().getScheme()) ? path.toUri().getPath() : path.toString();
    }

    private static RuntimeException unreadable(String name, Throwable error) {
        TaskContext task = TaskContext.get();
        if (error instanceof TaskKilledException) throw (TaskKilledException) error;
        if (task != null && task.isInterrupted()) throw new IllegalStateException("the task was stopped");
        // Spark ends a process for errors of the JVM, but here they tell of damage.
        Throwable cause = error;
        while (cause != null && !(cause instanceof VirtualMachineError)) cause = cause.getCause();
        return new IllegalStateException(
            "pack '" + name + "' cannot be read (" + error + "); run the query again with a new "
            + "DataFrame, which then reads the files whose rows it has", cause == null ? error : null);
    }

    @Override
    public boolean hasNext() {
        try {
            while (next == null && rows.hasNext()) {
                Object one = rows.next();
                next = one instanceof ColumnarBatch ? wanted((ColumnarBatch) one) : wanted(one);
            }
            if (next == null && row != numbers[END]) throw new IOException("it has other rows");
        } catch (Throwable error) {
            throw unreadable(name, error);
        }
        return next != null;
    }

    @Override
    public Object next() {
        if (!hasNext()) throw new java.util.NoSuchElementException();
        Object one = next;
        next = null;
        return one;
    }

    private void advance(long count) throws IOException {
        while (at < numbers.length && numbers[at + 1] <= row) at += 2;
        row += count;
        if (row > numbers[END]) throw new IOException("it has other rows");
    }

    private Object wanted(Object one) throws IOException {
        advance(1L);
        return at < numbers.length && numbers[at] < row ? one : null;
    }

    private Object wanted(ColumnarBatch batch) throws IOException {
        long first = row;
        advance(batch.numRows());
        if (at == numbers.length || numbers[at] >= row) return null;
        if (numbers[at] <= first && numbers[at + 1] >= row) return batch;
        int[] places = new int[batch.numRows()];
        int count = 0;
        for (int i = at; i < numbers.length && numbers[i] < row; i += 2) {
            long end = Math.min(numbers[i + 1], row);
            for (long j = Math.max(numbers[i], first); j < end; j++) places[count++] = (int) (j - first);
        }
        ColumnVector[] columns = new ColumnVector[batch.numCols()];
        for (int i = 0; i < columns.length; i++) columns[i] = new Some(batch.column(i), places);
        return new ColumnarBatch(columns, count);
    }

    @Override
    public void close() throws IOException {
        if (rows instanceof Closeable) ((Closeable) rows).close();
    }

    /** Some values of a column. */
    private static final class Some extends ColumnVector {
        private final ColumnVector all;
        private final int[] places;

        Some(ColumnVector all, int[] places) {
            super(all.dataType());
            this.all = all;
            this.places = places;
        }

        @Override
        public boolean hasNull() {
            return all.hasNull();
        }

        @Override
        public int numNulls() {
            throw new UnsupportedOperationException();
        }

        @Override
        public boolean isNullAt(int row) {
            return all.isNullAt(places[row]);
        }

        @Override
        public boolean getBoolean(int row) {
            return all.getBoolean(places[row]);
        }

        @Override
        public byte getByte(int row) {
            return all.getByte(places[row]);
        }

        @Override
        public short getShort(int row) {
            return all.getShort(places[row]);
        }

        @Override
        public int getInt(int row) {
            return all.getInt(places[row]);
        }

        @Override
        public long getLong(int row) {
            return all.getLong(places[row]);
        }

        @Override
        public float getFloat(int row) {
            return all.getFloat(places[row]);
        }

        @Override
        public double getDouble(int row) {
            return all.getDouble(places[row]);
        }

        @Override
        public Decimal getDecimal(int row, int precision, int scale) {
            return all.getDecimal(places[row], precision, scale);
        }

        @Override
        public UTF8String getUTF8String(int row) {
            return all.getUTF8String(places[row]);
        }

        @Override
        public byte[] getBinary(int row) {
            return all.getBinary(places[row]);
        }

        @Override
        public ColumnarArray getArray(int row) {
            return all.getArray(places[row]);
        }

        @Override
        public ColumnarMap getMap(int row) {
            return all.getMap(places[row]);
        }

        @Override
        public ColumnVector getChild(int child) {
            return new Some(all.getChild(child), places);
        }

        /** The vectors belong to Spark's reader. */
        @Override
        public void close() {}
    }
}
