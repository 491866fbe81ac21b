package windrow;

import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.apache.hadoop.fs.Path;
import org.apache.spark.api.python.PythonUtils;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.catalyst.catalog.ExternalCatalogUtils;
import org.apache.spark.sql.catalyst.expressions.Cast;
import org.apache.spark.sql.catalyst.expressions.EvalMode$;
import org.apache.spark.sql.catalyst.expressions.Literal$;
import org.apache.spark.sql.catalyst.util.CaseInsensitiveMap$;
import org.apache.spark.sql.execution.datasources.FileIndex;
import org.apache.spark.sql.execution.datasources.FileStatusCache$;
import org.apache.spark.sql.execution.datasources.InMemoryFileIndex;
import org.apache.spark.sql.execution.datasources.PartitionPath;
import org.apache.spark.sql.internal.SQLConf;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.types.TimestampType;
import scala.Option;

/**
 * The files of a path that Windrow knows, which Spark lists only if it needs them itself: in a query
 * that Windrow does not plan after all.
 */
public final class PathIndex implements FileIndex {
    private static final String ZONE = "timeZone";

    private final SparkSession session;
    private final SEQ roots;
    private final scala.collection.immutable.Map options;
    private final StructType partition;
    private final long sizeInBytes;
    /** The time zone in which Spark reads times in folders from now on. */
    private final String zone = SQLConf.get().sessionLocalTimeZone();
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
                session, roots, zoned(), Option.apply(partition),
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

    /** Returns the options with which Spark reads times in folders in the index's zone. */
    private scala.collection.immutable.Map zoned() {
        if (CaseInsensitiveMap$.MODULE$.apply(options).contains(ZONE)) return options;
        Map more = new HashMap();
        scala.collection.Iterator pairs = options.iterator();
        while (pairs.hasNext()) {
            scala.Tuple2 pair = (scala.Tuple2) pairs.next();
            more.put(pair._1(), pair._2());
        }
        more.put(ZONE, zone);
        return (scala.collection.immutable.Map) PythonUtils.toScalaMap(more);
    }

    /** Tells whether the times in a relation's folders were read in the zone that is used now. */
    static boolean isInZone(
            FileIndex files, StructType partition, scala.collection.immutable.Map options) {
        // An option of the format counts at all times.
        if (CaseInsensitiveMap$.MODULE$.apply(options).contains(ZONE)) return true;
        String now = SQLConf.get().sessionLocalTimeZone();
        for (int at = 0; at < partition.fields().length; at++) {
            if (!(partition.fields()[at].dataType() instanceof TimestampType)) continue;
            if (files instanceof PathIndex) return ((PathIndex) files).zone.equals(now);
            SEQ all = (SEQ) ((InMemoryFileIndex) files).partitionSpec().partitions();
            for (int i = 0; i < all.size(); i++) {
                PartitionPath one = (PartitionPath) all.apply(i);
                Path folder = one.path();
                for (int up = at + 1; up < partition.fields().length; up++) {
                    folder = folder.getParent();
                }
                String name = folder.getName();
                String text = ExternalCatalogUtils.unescapePathName(
                    name.substring(name.indexOf('=') + 1));
                Object time = new Cast(
                    Literal$.MODULE$.apply(text), DataTypes.TimestampType, Option.apply(now),
                    EvalMode$.MODULE$.LEGACY()).eval(null);
                boolean isNull = one.values().isNullAt(at);
                if (!isNull && !Long.valueOf(one.values().getLong(at)).equals(time)) return false;
            }
        }
        return true;
    }

    @Override
    public SEQ rootPaths() {
        return roots;
    }

    @Override
    public SEQ listFiles(SEQ partitionFilters, SEQ dataFilters) {
        return listing().listFiles(partitionFilters, dataFilters);
    }

    @Override
    public String[] inputFiles() {
        return listing().inputFiles();
    }

    @Override
    public synchronized void refresh() {
        if (listing != null) listing.refresh();
    }

    @Override
    public synchronized long sizeInBytes() {
        return listing == null ? sizeInBytes : listing.sizeInBytes();
    }

    @Override
    public StructType partitionSchema() {
        return partition;
    }

    /** As Spark's own: the same paths are the same files, so that cached rows are used. */
    @Override
    public boolean equals(Object other) {
        return other instanceof PathIndex && roots.equals(((PathIndex) other).roots);
    }

    @Override
    public int hashCode() {
        return roots.hashCode();
    }

    @Override
    public String toString() {
        return "PathIndex(" + roots.apply(0) + ")";
    }
}
