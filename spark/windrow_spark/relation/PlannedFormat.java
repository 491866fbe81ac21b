package windrow;

import java.io.Closeable;
import java.io.IOException;
import java.io.Serializable;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import org.apache.hadoop.conf.Configuration;
import org.apache.spark.SparkContext;
import org.apache.spark.api.java.JavaSparkContext;
import org.apache.spark.api.python.PythonUtils;
import org.apache.spark.broadcast.Broadcast;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.execution.datasources.PartitionedFile;
import org.apache.spark.sql.sources.Filter;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.vectorized.ColumnarBatch;
import org.apache.spark.unsafe.Platform;
import org.apache.spark.util.LongAccumulator;
import org.apache.spark.util.SerializableConfiguration;
import scala.Function1;
import scala.collection.AbstractIterator;
import scala.collection.Iterator;
import scala.runtime.AbstractFunction1;

/**
 * Spark's own reader of a format, for files that must match a plan. Also runs on executors.
 * A template, compiled once for each class with which Spark reads a format.
 */
public final class NAME extends BASE {
    private Counters counters;
    private boolean isRemote;
    /** Hadoop's, for all relations of a scan: each takes a task some time to read. */
    private transient Broadcast settings;

    /** Starts to count; returns this. */
    public NAME counting(SparkContext context) {
        this.counters = new Counters(context);
        return this;
    }

    /** Lets the files be those of one of Hadoop's file systems, not local ones; returns this. */
    public NAME remote() {
        this.isRemote = true;
        return this;
    }

    /** Returns how many files, bytes and rows the finished tasks have read, and in how many ns. */
    public String counts() {
        return counters.files.value() + " " + counters.bytes.value() + " " + counters.rows.value()
            + " " + counters.nanos.value();
    }

    @Override
    public Function1 buildReaderWithPartitionValues(
            SparkSession session, StructType data, StructType partition, StructType required,
            SEQ filters, scala.collection.immutable.Map options, Configuration configuration) {
        // The file system that a process opens first is that of all its queries, with all settings.
        if (isRemote && settings == null) {
            settings = JavaSparkContext.fromSparkContext(session.sparkContext()).broadcast(
                new SerializableConfiguration(configuration));
        }
        return new Reader(super.buildReaderWithPartitionValues(
            session, data, partition, required, exact(filters, data), options,
            isRemote ? configuration : chosen(configuration)),
            counters, settings);
    }

    /**
     * Returns the conditions by which a reader may skip rows, all of which Spark applies again.
     * Statistics and dictionaries leave out NaN and tell -0.0 from 0.0, so a reader that skips by a
     * condition on floats loses rows.
     */
    private static SEQ exact(SEQ filters, StructType data) {
        List exact = new ArrayList();
        for (int i = 0; i < filters.size(); i++) {
            Filter filter = (Filter) filters.apply(i);
            boolean isExact = true;
            for (String name : filter.references()) isExact &= holdsNoFloat(name, data);
            if (isExact) exact.add(filter);
        }
        return (SEQ) PythonUtils.toSeq(exact);
    }

    /** Tells whether a column, or the column that a nested one is part of, has no floats. */
    private static boolean holdsNoFloat(String name, StructType data) {
        String wanted = name.toLowerCase(Locale.ROOT);
        for (StructField field : data.fields()) {
            String known = field.name().toLowerCase(Locale.ROOT);
            if (wanted.equals(known) || wanted.startsWith(known + ".")) {
                String type = field.dataType().json();
                return !type.contains("\"float\"") && !type.contains("\"double\"");
            }
        }
        // A name with dots is in quotes.
        return false;
    }

    /** Counts of tasks, which Spark adds up, each task once. */
    private static final class Counters implements Serializable {
        private final LongAccumulator files;
        private final LongAccumulator bytes;
        private final LongAccumulator rows;
        private final LongAccumulator nanos;

        Counters(SparkContext context) {
            this.files = context.longAccumulator();
            this.bytes = context.longAccumulator();
            this.rows = context.longAccumulator();
            this.nanos = context.longAccumulator();
        }
    }

    /**
     * Returns the settings that are not Hadoop's defaults. Spark copies the configuration for each
     * file; with all defaults, this takes an eighth of the time of a small file. Code that reads a
     * setting passes its own default.
     */
    private static Configuration chosen(Configuration configuration) {
        Configuration chosen = new Configuration(false);
        java.util.Iterator entries = configuration.iterator();
        while (entries.hasNext()) {
            String name = (String) ((Map.Entry) entries.next()).getKey();
            String[] sources = configuration.getPropertySources(name);
            boolean isDefault =
                sources != null && sources[sources.length - 1].endsWith("-default.xml");
            if (!isDefault) chosen.set(name, configuration.get(name));
        }
        return chosen;
    }

    /** Opens one file, or a range of one. */
    public static final class Reader extends AbstractFunction1 implements Serializable {
        private final Function1 reader;
        private final Counters counters;
        private final Broadcast settings;

        Reader(Function1 reader, Counters counters, Broadcast settings) {
            this.reader = reader;
            this.counters = counters;
            this.settings = settings;
        }

        @Override
        public Object apply(Object file) {
            PartitionedFile planned = (PartitionedFile) file;
            long[] ofPack = PackRows.numbers(planned);
            // The driver has compared packs with their plan, and the reader their rows.
            FileCheck check = ofPack == null ? new FileCheck(planned, settings) : null;
            // If several tasks share a file, the first one counts it.
            if (ofPack != null) counters.files.add(PackRows.files(ofPack));
            else if (planned.start() == 0L) counters.files.add(1L);
            counters.bytes.add(planned.length());
            long begin = System.nanoTime();
            try {
                Iterator rows = ofPack == null
                    ? (Iterator) reader.apply(planned) : PackRows.of(planned, reader, settings);
                if (check != null) check.opened();
                counters.nanos.add(System.nanoTime() - begin);
                return new Rows(rows, check, counters);
            } catch (Throwable error) {
                if (check != null) check.failed();
                Platform.throwException(error);
                return null;
            }
        }
    }

    /** The rows of a file; after the last row, the file is compared with the plan again. */
    private static final class Rows extends AbstractIterator implements Closeable {
        private static final int ROWS = 64;
        private final Iterator rows;
        private final FileCheck check;
        private final Counters counters;
        private long count = 0;
        private long nanos = 0;
        private long calls = 0;
        /** Of so many calls one is timed: a call for a row takes hardly longer than the clock. */
        private int sampled = 1;

        Rows(Iterator rows, FileCheck check, Counters counters) {
            this.rows = rows;
            this.check = check;
            this.counters = counters;
        }

        @Override
        public boolean hasNext() {
            boolean more;
            if (calls++ % sampled == 0) {
                long begin = System.nanoTime();
                more = more();
                nanos += (System.nanoTime() - begin) * sampled;
            } else {
                more = more();
            }
            if (!more) {
                if (check != null) check.end();
                tell();
            }
            return more;
        }

        @Override
        public Object next() {
            Object next = rows.next();
            if (next instanceof ColumnarBatch) {
                count += ((ColumnarBatch) next).numRows();
            } else {
                count++;
                sampled = ROWS;
            }
            return next;
        }

        /** A line may be longer than the memory of a task; this must not end the process. */
        private boolean more() {
            try {
                return rows.hasNext();
            } catch (OutOfMemoryError error) {
                if (check == null) throw error;
                throw new IllegalStateException(
                    "a record of file '" + check.name()
                    + "' does not fit into the memory of a task: " + error.getMessage());
            } catch (RuntimeException error) {
                if (check != null) check.failed();
                throw error;
            }
        }

        private void tell() {
            counters.rows.add(count);
            counters.nanos.add(nanos);
            count = 0;
            nanos = 0;
        }

        @Override
        public void close() throws IOException {
            tell();
            if (rows instanceof Closeable) ((Closeable) rows).close();
        }
    }
}
