package windrow;

import java.util.ArrayList;
import java.util.List;
import org.apache.hadoop.fs.Path;
import org.apache.spark.api.python.PythonUtils;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.execution.datasources.FileIndex;
import org.apache.spark.sql.execution.datasources.FileStatusCache$;
import org.apache.spark.sql.execution.datasources.InMemoryFileIndex;
import org.apache.spark.sql.types.StructType;
import scala.Option;

/**
 * The files of a path that Windrow knows, which Spark lists only if it needs them itself: in a query
 * that Windrow does not plan after all.
 */
public final class PathIndex implements FileIndex {
    private final SparkSession session;
    private final SEQ roots;
    private final scala.collection.immutable.Map options;
    private final StructType partition;
    private final long sizeInBytes;
    private InMemoryFileIndex listing;

    PathIndex(
            SparkSession session, Path root, scala.collection.immutable.Map options,
            StructType partition, long sizeInBytes) {
        this.session = session;
        this.options = options;
        this.partition = partition;
        this.sizeInBytes = sizeInBytes;
        List paths = new ArrayList();
        paths.add(root);
        this.roots = (SEQ) PythonUtils.toSeq(paths);
    }

    /** Tells whether Spark has listed the files. */
    public synchronized boolean isListed() {
        return listing != null;
    }

    private synchronized InMemoryFileIndex listing() {
        if (listing == null) {
            InMemoryFileIndex made = new InMemoryFileIndex(
                session, roots, options, Option.apply(partition),
                FileStatusCache$.MODULE$.getOrCreate(session), Option.empty(), Option.empty());
            String now = made.partitionSchema().simpleString();
            if (!now.equals(partition.simpleString())) {
                throw new IllegalArgumentException(
                    "The partition columns of the folders in " + roots.apply(0) + " are " + now
                    + " now, and were " + partition.simpleString() + ": read the path again");
            }
            listing = made;
        }
        return listing;
    }

    public SEQ rootPaths() {
        return roots;
    }

    public SEQ listFiles(SEQ partitionFilters, SEQ dataFilters) {
        return listing().listFiles(partitionFilters, dataFilters);
    }

    public String[] inputFiles() {
        return listing().inputFiles();
    }

    public synchronized void refresh() {
        if (listing != null) listing.refresh();
    }

    public synchronized long sizeInBytes() {
        return listing == null ? sizeInBytes : listing.sizeInBytes();
    }

    public StructType partitionSchema() {
        return partition;
    }

    /** As Spark's own: the same paths are the same files, so that cached rows are used. */
    public boolean equals(Object other) {
        return other instanceof PathIndex && roots.equals(((PathIndex) other).roots);
    }

    public int hashCode() {
        return roots.hashCode();
    }

    public String toString() {
        return "PathIndex(" + roots.apply(0) + ")";
    }
}
