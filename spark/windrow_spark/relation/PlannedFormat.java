package windrow;

import java.io.Closeable;
import java.io.IOException;
import java.io.Serializable;
import java.net.URI;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;
import java.nio.file.Paths;
import java.time.Instant;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import org.apache.hadoop.conf.Configuration;
import org.apache.spark.SparkContext;
import org.apache.spark.api.python.PythonUtils;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.execution.datasources.PartitionedFile;
import org.apache.spark.sql.sources.Filter;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.vectorized.ColumnarBatch;
import org.apache.spark.util.LongAccumulator;
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

    /** Starts to count; returns this. */
    public NAME counting(SparkContext context) {
        this.counters = new Counters(context);
        return this;
    }

    /** Returns how many files, bytes and rows the finished tasks have read. */
    public String counts() {
        return counters.files.value() + " " + counters.bytes.value() + " " + counters.rows.value();
    }

    public Function1 buildReaderWithPartitionValues(
            SparkSession session, StructType data, StructType partition, StructType required,
            SEQ filters, scala.collection.immutable.Map options, Configuration configuration) {
        return new Reader(super.buildReaderWithPartitionValues(
            session, data, partition, required, exact(filters, data), options,
            chosen(configuration)),
            counters);
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

        Counters(SparkContext context) {
            this.files = context.longAccumulator();
            this.bytes = context.longAccumulator();
            this.rows = context.longAccumulator();
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

        Reader(Function1 reader, Counters counters) {
            this.reader = reader;
            this.counters = counters;
        }

        public Object apply(Object file) {
            PartitionedFile planned = (PartitionedFile) file;
            require(planned);
            // If several tasks share a file, the first one counts it.
            if (planned.start() == 0L) counters.files.add(1L);
            counters.bytes.add(planned.length());
            return new Rows((Iterator) reader.apply(planned), planned, counters);
        }
    }

    /** The rows of a file; after the last row, the file is compared with the plan again. */
    private static final class Rows extends AbstractIterator implements Closeable {
        private final Iterator rows;
        private final PartitionedFile file;
        private final Counters counters;
        private long count = 0;

        Rows(Iterator rows, PartitionedFile file, Counters counters) {
            this.rows = rows;
            this.file = file;
            this.counters = counters;
        }

        public boolean hasNext() {
            boolean more = more();
            if (!more) {
                require(file);
                tell();
            }
            return more;
        }

        public Object next() {
            Object next = rows.next();
            count += next instanceof ColumnarBatch ? ((ColumnarBatch) next).numRows() : 1;
            return next;
        }

        /** A line may be longer than the memory of a task; this must not end the process. */
        private boolean more() {
            try {
                return rows.hasNext();
            } catch (OutOfMemoryError error) {
                throw new IllegalStateException(
                    "a record of file '" + path(file)
                    + "' does not fit into the memory of a task: " + error.getMessage());
            }
        }

        private void tell() {
            counters.rows.add(count);
            count = 0;
        }

        public void close() throws IOException {
            tell();
            if (rows instanceof Closeable) ((Closeable) rows).close();
        }
    }

    /** Returns a file's path, whose URI has letters that only Hadoop leaves without escapes. */
    private static Path path(PartitionedFile file) {
        StringBuilder escaped = new StringBuilder("file://");
        for (byte part : file.filePath().toUri().getRawPath().getBytes(StandardCharsets.UTF_8)) {
            if (part < 0) escaped.append('%').append(Integer.toHexString(part & 255));
            else escaped.append((char) part);
        }
        return Paths.get(URI.create(escaped.toString()));
    }

    private static void require(PartitionedFile planned) {
        Path path = path(planned);
        try {
            compare(path, "size in bytes", planned.fileSize(), Files.size(path));
            // Spark's own time has milliseconds.
            long time = ((Long) planned.otherConstantMetadataColumnValues().apply(
                "windrow_time_us")).longValue();
            // Files of tables with a log never change, and have no time here.
            if (time == Long.MIN_VALUE) return;
            Instant changed = Files.getLastModifiedTime(path).toInstant();
            compare(
                path, "modification time in microseconds", time,
                changed.getEpochSecond() * 1000000L + changed.getNano() / 1000);
        } catch (NoSuchFileException error) {
            throw new IllegalStateException("file '" + path + "' has vanished since the plan was made");
        } catch (IOException error) {
            throw new IllegalStateException("file '" + path + "' cannot be read: " + error);
        }
    }

    private static void compare(Path path, String what, long planned, long found) {
        if (found == planned) return;
        throw new IllegalStateException(
            "file '" + path + "' has changed since the plan was made: " + what + " was " + planned
            + " and is " + found);
    }
}
