package windrow;

import org.apache.spark.rdd.RDD;
import org.apache.spark.sql.execution.datasources.HadoopFsRelation;

/** What a scan reads, as Python answers it: rows of groups, files and packs for Spark's reader, figures. */
public final class ScanAnswer {
    /** The rows of groups; null if there are none. */
    final RDD groups;
    /** The files that Spark's own reader reads; null if there are none. */
    final HadoopFsRelation files;
    /** The packs that it reads; null if there are none. */
    final HadoopFsRelation packs;
    /** What Spark's UI shows of the query's jobs. */
    final String description;
    final long fileCount;
    final long filesSize;
    final long groupCount;
    final long nativeCount;
    final long packedCount;

    /** Makes answers for Python. */
    public static final class Factory {
        /** Returns an answer. */
        public ScanAnswer answer(
                RDD groups, HadoopFsRelation files, HadoopFsRelation packs, String description,
                long fileCount, long filesSize, long groupCount, long nativeCount,
                long packedCount) {
            return new ScanAnswer(
                groups, files, packs, description, fileCount, filesSize, groupCount, nativeCount,
                packedCount);
        }
    }

    ScanAnswer(
            RDD groups, HadoopFsRelation files, HadoopFsRelation packs, String description,
            long fileCount, long filesSize, long groupCount, long nativeCount, long packedCount) {
        this.groups = groups;
        this.files = files;
        this.packs = packs;
        this.description = description;
        this.fileCount = fileCount;
        this.filesSize = filesSize;
        this.groupCount = groupCount;
        this.nativeCount = nativeCount;
        this.packedCount = packedCount;
    }
}
