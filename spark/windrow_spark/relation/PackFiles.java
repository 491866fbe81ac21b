package windrow;

import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.LongBuffer;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.apache.spark.Partition;
import org.apache.spark.api.python.PythonUtils;
import org.apache.spark.paths.SparkPath;
import org.apache.spark.rdd.RDD;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.catalyst.expressions.GenericInternalRow;
import org.apache.spark.sql.execution.datasources.FileFormat;
import org.apache.spark.sql.execution.datasources.FileIndex;
import org.apache.spark.sql.execution.datasources.FilePartition;
import org.apache.spark.sql.execution.datasources.HadoopFsRelation;
import org.apache.spark.sql.execution.datasources.PartitionedFile;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.StructType;
import scala.Option;

/** The packs of a plan, and which of their rows are wanted: whole row groups are read of them. */
public final class PackFiles implements FileIndex {
    // A task that decodes fewer rows ends as soon as it has begun; one with more, late.
    private static final long FEWEST_ROWS = 50_000L;
    private static final long MOST_ROWS = 8_000_000L;

    private final OpenedPacks packs;
    /** For each wanted range of rows: its pack, its first row, the one after its last, its files. */
    private final long[] ranges;
    private final int slots;
    private final byte[] identity;

    /** Opens packs for Python, and makes relations of them. */
    public static final class Factory {
        /** Opens packs: URI, bytes and rows of each, a line each. */
        public OpenedPacks open(SparkSession session, String packs) {
            return new OpenedPacks(session, packs);
        }

        /**
         * Returns rows of packs as one of Spark's own tables.
         *
         * @param session The user's session.
         * @param slots How many tasks run at the same time.
         * @param packs The packs.
         * @param ranges The wanted ranges of packs that can be read, in order and without overlaps:
         *     of each the pack, the first row, the one after its last, and how many files have these
         *     rows.
         */
        public HadoopFsRelation files(
                SparkSession session, int slots, FileFormat format, String data, OpenedPacks packs,
                byte[] ranges) {
            Map options = new HashMap();
            options.put("parquet.page.verify-checksum.enabled", "true");
            return new HadoopFsRelation(
                new PackFiles(packs, ranges, slots), new StructType(),
                (StructType) DataType.fromJson(data), Option.empty(), format,
                (scala.collection.immutable.Map) PythonUtils.toScalaMap(options),
                PlannedFiles.Factory.reading(session, 1));
        }
    }

    /** Row groups of a pack, one after the other, that one task reads. */
    private static final class Part {
        final int pack;
        final int task;
        final int first;
        int end;

        Part(int pack, int task, int first) {
            this.pack = pack;
            this.task = task;
            this.first = first;
            this.end = first + 1;
        }
    }

    private PackFiles(OpenedPacks packs, byte[] ranges, int slots) {
        this.packs = packs;
        LongBuffer numbers = ByteBuffer.wrap(ranges).order(ByteOrder.LITTLE_ENDIAN).asLongBuffer();
        this.ranges = new long[numbers.remaining()];
        numbers.get(this.ranges);
        this.identity = ranges;
        this.slots = slots;
    }

    /** Returns Spark's scan of these packs, in tasks that decode about as many rows. */
    RDD placed(RDD rows) {
        List parts = parts();
        List tasks = new ArrayList();
        int range = 0;
        for (int i = 0; i < parts.size();) {
            int task = ((Part) parts.get(i)).task;
            List own = new ArrayList();
            for (; i < parts.size() && ((Part) parts.get(i)).task == task; i++) {
                Part part = (Part) parts.get(i);
                // Both are in order, and a range may go on in the next part.
                while (endsBefore(range, part)) range += 4;
                own.add(file(part, range));
            }
            tasks.add(new FilePartition(
                tasks.size(), (PartitionedFile[]) own.toArray(new PartitionedFile[own.size()])));
        }
        return new PlacedTasks(rows, (Partition[]) tasks.toArray(new Partition[tasks.size()]));
    }

    /** Returns the row groups with wanted rows, divided among tasks. */
    private List parts() {
        List packOf = new ArrayList();
        List groups = new ArrayList();
        long total = 0;
        for (int i = 0; i < ranges.length; i += 4) {
            int pack = (int) ranges[i];
            PackFooter footer = packs.footers[pack];
            int group = Arrays.binarySearch(footer.firstRows, ranges[i + 1]);
            if (group < 0) group = -group - 2;
            for (; group < footer.groups() && footer.firstRows[group] < ranges[i + 2]; group++) {
                int last = groups.size() - 1;
                if (last >= 0 && ((Integer) packOf.get(last)).intValue() == pack
                    && ((Integer) groups.get(last)).intValue() == group) continue;
                packOf.add(Integer.valueOf(pack));
                groups.add(Integer.valueOf(group));
                total += footer.firstRows[group + 1] - footer.firstRows[group];
            }
        }
        long rounds = Math.max(1L, (total + slots * MOST_ROWS - 1) / (slots * MOST_ROWS));
        long tasks = Math.max(1L, Math.min(slots * rounds, total / FEWEST_ROWS));
        List parts = new ArrayList();
        long before = 0;
        for (int i = 0; i < groups.size(); i++) {
            int pack = ((Integer) packOf.get(i)).intValue();
            int group = ((Integer) groups.get(i)).intValue();
            long[] firstRows = packs.footers[pack].firstRows;
            long count = firstRows[group + 1] - firstRows[group];
            int task = (int) ((before + count / 2) * tasks / Math.max(1L, total));
            before += count;
            Part part = parts.isEmpty() ? null : (Part) parts.get(parts.size() - 1);
            if (part != null && part.pack == pack && part.task == task && part.end == group) part.end++;
            else parts.add(new Part(pack, task, group));
        }
        return parts;
    }

    private boolean endsBefore(int range, Part part) {
        int pack = (int) ranges[range];
        long first = packs.footers[part.pack].firstRows[part.first];
        return pack < part.pack || pack == part.pack && ranges[range + 2] <= first;
    }

    /**
     * Returns a part of a pack, and which of its rows are wanted.
     *
     * @param range Where the first range with rows of the part begins.
     */
    private PartitionedFile file(Part part, int range) {
        PackFooter footer = packs.footers[part.pack];
        long first = footer.firstRows[part.first];
        long end = footer.firstRows[part.end];
        int last = range;
        while (last < ranges.length && ranges[last] == part.pack && ranges[last + 1] < end) last += 4;
        long[] numbers = new long[PackRows.WANTED + (last - range) / 2];
        int count = PackRows.WANTED;
        long files = 0;
        for (int i = range; i < last; i += 4) {
            if (ranges[i + 1] >= first) files += ranges[i + 3];
            numbers[count++] = Math.max(ranges[i + 1], first);
            numbers[count++] = Math.min(ranges[i + 2], end);
        }
        numbers[PackRows.FIRST] = first;
        numbers[PackRows.END] = end;
        numbers[PackRows.FILES] = files;
        numbers[PackRows.SEAL_AT] = footer.sealAt;
        long begin = footer.begins[part.first];
        return new PartitionedFile(
            new GenericInternalRow(new Object[0]),
            SparkPath.fromPath(PlannedFiles.path(packs.uris[part.pack])), begin,
            footer.ends[part.end - 1] - begin, new String[0], 0L, packs.sizes[part.pack],
            (scala.collection.immutable.Map) new scala.collection.immutable.Map.Map2(
                PackRows.KEY, numbers, PackRows.SEAL, footer.seal));
    }

    @Override
    public SEQ rootPaths() {
        List paths = new ArrayList();
        for (int i = 0; i < packs.uris.length; i++) paths.add(PlannedFiles.path(packs.uris[i]));
        return (SEQ) PythonUtils.toSeq(paths);
    }

    /** Lists nothing: `placed` says what is read. */
    @Override
    public SEQ listFiles(SEQ partitionFilters, SEQ dataFilters) {
        return (SEQ) PythonUtils.toSeq(new ArrayList());
    }

    @Override
    public String[] inputFiles() {
        return (String[]) packs.uris.clone();
    }

    @Override
    public void refresh() {}

    @Override
    public long sizeInBytes() {
        long all = 0;
        for (int i = 0; i < packs.sizes.length; i++) all += packs.sizes[i];
        return all;
    }

    @Override
    public StructType partitionSchema() {
        return new StructType();
    }

    @Override
    public boolean equals(Object other) {
        return other instanceof PackFiles && Arrays.equals(packs.uris, ((PackFiles) other).packs.uris)
            && Arrays.equals(identity, ((PackFiles) other).identity);
    }

    @Override
    public int hashCode() {
        return Arrays.hashCode(identity);
    }
}
