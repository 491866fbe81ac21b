package windrow;

import java.io.Closeable;
import java.io.IOException;
import java.io.Serializable;
import java.nio.file.Files;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;
import java.nio.file.Paths;
import java.time.Instant;
import org.apache.hadoop.conf.Configuration;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.execution.datasources.PartitionedFile;
import org.apache.spark.sql.execution.datasources.parquet.ParquetFileFormat;
import org.apache.spark.sql.types.StructType;
import scala.Function1;
import scala.collection.AbstractIterator;
import scala.collection.Iterator;
import scala.runtime.AbstractFunction1;

/** Spark's Parquet reader, for files that must be those of a plan. Also runs on executors. */
public final class PlannedFormat extends ParquetFileFormat {
    public Function1 buildReaderWithPartitionValues(
            SparkSession session, StructType data, StructType partition, StructType required,
            SEQ filters, scala.collection.immutable.Map options, Configuration configuration) {
        return new Reader(super.buildReaderWithPartitionValues(
            session, data, partition, required, filters, options, configuration));
    }

    /** Opens one file, or a range of one. */
    public static final class Reader extends AbstractFunction1 implements Serializable {
        private final Function1 reader;

        Reader(Function1 reader) {
            this.reader = reader;
        }

        public Object apply(Object file) {
            PartitionedFile planned = (PartitionedFile) file;
            require(planned);
            return new Rows((Iterator) reader.apply(planned), planned);
        }
    }

    /** The rows of a file, which is compared with the plan again after the last one. */
    private static final class Rows extends AbstractIterator implements Closeable {
        private final Iterator rows;
        private final PartitionedFile file;

        Rows(Iterator rows, PartitionedFile file) {
            this.rows = rows;
            this.file = file;
        }

        public boolean hasNext() {
            boolean more = rows.hasNext();
            if (!more) require(file);
            return more;
        }

        public Object next() {
            return rows.next();
        }

        public void close() throws IOException {
            if (rows instanceof Closeable) ((Closeable) rows).close();
        }
    }

    private static void require(PartitionedFile planned) {
        Path path = Paths.get(planned.filePath().toUri());
        try {
            compare(path, "size in bytes", planned.fileSize(), Files.size(path));
            Instant changed = Files.getLastModifiedTime(path).toInstant();
            compare(
                path, "modification time in microseconds", planned.modificationTime(),
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
