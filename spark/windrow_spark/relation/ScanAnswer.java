package windrow;

import java.util.ArrayList;
import java.util.List;
import org.apache.spark.rdd.RDD;

/** What a scan reads, as Python answers it: rows of groups, files for Spark's reader, figures. */
public final class ScanAnswer {
    /** The rows of groups; null if there are none. */
    final RDD groups;
    /** The relations of the files that Spark's own reader reads. */
    final List relations = new ArrayList();
    /** What Spark's UI shows of the query's jobs. */
    final String description;
    final long fileCount;
    final long filesSize;
    final long groupCount;
    final long nativeCount;

    /** Makes answers for Python. */
    public static final class Factory {
        /** Returns an answer, to which relations are added. */
        public ScanAnswer answer(
                RDD groups, String description, long fileCount, long filesSize, long groupCount,
                long nativeCount) {
            return new ScanAnswer(
                groups, description, fileCount, filesSize, groupCount, nativeCount);
        }
    }

    ScanAnswer(
            RDD groups, String description, long fileCount, long filesSize, long groupCount,
            long nativeCount) {
        this.groups = groups;
        this.description = description;
        this.fileCount = fileCount;
        this.filesSize = filesSize;
        this.groupCount = groupCount;
        this.nativeCount = nativeCount;
    }

    /** Adds a relation of files for Spark's own reader. */
    public void add(Object relation) {
        relations.add(relation);
    }
}
