package windrow;

import java.io.ByteArrayInputStream;
import java.io.IOException;
import java.net.URI;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.WeakHashMap;
import org.apache.arrow.memory.BufferAllocator;
import org.apache.arrow.vector.BigIntVector;
import org.apache.arrow.vector.IntVector;
import org.apache.arrow.vector.VarCharVector;
import org.apache.arrow.vector.VectorSchemaRoot;
import org.apache.arrow.vector.ipc.ArrowStreamReader;
import org.apache.hadoop.fs.BlockLocation;
import org.apache.hadoop.fs.FileStatus;
import org.apache.hadoop.fs.LocatedFileStatus;
import org.apache.hadoop.fs.Path;
import org.apache.spark.api.python.PythonUtils;
import org.apache.spark.rdd.RDD;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.execution.datasources.FileFormat;
import org.apache.spark.sql.execution.datasources.FileIndex;
import org.apache.spark.sql.execution.datasources.FileStatusWithMetadata;
import org.apache.spark.sql.execution.datasources.HadoopFsRelation;
import org.apache.spark.sql.execution.datasources.PartitionDirectory;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.util.ArrowUtils$;
import scala.Option;

/** The files of a plan, by the values of their partition columns. */
public final class PlannedFiles implements FileIndex {
    private final StructType columns;
    private final InternalRow[] values;
    private final SEQ[] files;
    private final String[] names;
    private final long sizeInBytes;
    private final byte[] identity;
    private final int tasks;
    private final String[] executors;

    /** Makes relations for Python. */
    public static final class Factory {
        // The sessions that read for a user's session, by the number of tasks.
        private static final Map SESSIONS = new WeakHashMap();

        /**
         * Returns the files of a plan as one of Spark's own tables, without a listing.
         *
         * @param session The user's session.
         * @param tasks How many tasks are to read them.
         * @param executors The hosts with executors, a line each; empty if they are unknown.
         */
        public HadoopFsRelation files(
                SparkSession session, int tasks, String executors, FileFormat format, Map options,
                String data, String partition, byte[] values, byte[] files)
                throws IOException {
            StructType columns = (StructType) DataType.fromJson(partition);
            String[] hosts = executors.isEmpty() ? new String[0] : executors.split("\n");
            return new HadoopFsRelation(
                new PlannedFiles(columns, values, files, tasks, hosts), columns,
                (StructType) DataType.fromJson(data), Option.empty(), format,
                (scala.collection.immutable.Map) PythonUtils.toScalaMap(options),
                reading(session, tasks));
        }

        /** Returns a session that reads as the user's does, but cuts files for so many tasks. */
        static SparkSession reading(SparkSession user, int tasks) {
            SparkSession session;
            synchronized (SESSIONS) {
                Map sessions = (Map) SESSIONS.get(user);
                if (sessions == null) SESSIONS.put(user, sessions = new HashMap());
                Integer key = Integer.valueOf(tasks);
                session = (SparkSession) sessions.get(key);
                if (session == null) sessions.put(key, session = user.newSession());
            }
            Map ours = new HashMap(user.sessionState().conf().settings());
            ours.put("spark.sql.files.openCostInBytes", "0");
            // So much that only the number of tasks decides how Spark cuts files.
            ours.put("spark.sql.files.maxPartitionBytes", "512MB");
            ours.put("spark.sql.files.minPartitionNum", String.valueOf(tasks));
            // A planned file that cannot be read fails the query.
            ours.put("spark.sql.files.ignoreCorruptFiles", "false");
            ours.put("spark.sql.files.ignoreMissingFiles", "false");
            Map theirs = session.sessionState().conf().settings();
            theirs.putAll(ours);
            theirs.keySet().retainAll(ours.keySet());
            return session;
        }
    }

    PlannedFiles(
            StructType columns, byte[] values, byte[] files, int tasks, String[] executors)
            throws IOException {
        this.columns = columns;
        this.tasks = tasks;
        this.executors = executors;
        this.identity = files;
        BufferAllocator memory = ArrowUtils$.MODULE$.rootAllocator()
            .newChildAllocator("windrow", 0L, Long.MAX_VALUE);
        try {
            this.values = PartitionValues.rows(values, columns);
            List[] found = new List[this.values.length];
            for (int i = 0; i < found.length; i++) found[i] = new ArrayList();
            List names = new ArrayList();
            this.sizeInBytes = read(files, memory, found, names);
            this.names = (String[]) names.toArray(new String[names.size()]);
            this.files = new SEQ[found.length];
            for (int i = 0; i < found.length; i++) {
                this.files[i] = (SEQ) PythonUtils.toSeq(found[i]);
            }
        } finally {
            memory.close();
        }
    }

    private static long read(byte[] stream, BufferAllocator memory, List[] found, List names)
            throws IOException {
        ArrowStreamReader reader = new ArrowStreamReader(new ByteArrayInputStream(stream), memory);
        try {
            reader.loadNextBatch();
            VectorSchemaRoot batch = reader.getVectorSchemaRoot();
            VarCharVector uris = (VarCharVector) batch.getVector("uri");
            VarCharVector hosts = (VarCharVector) batch.getVector("hosts");
            BigIntVector sizes = (BigIntVector) batch.getVector("size_bytes");
            BigIntVector times = (BigIntVector) batch.getVector("mtime_us");
            IntVector partitions = (IntVector) batch.getVector("partition");
            VarCharVector etags = (VarCharVector) batch.getVector("etag");
            Map known = new HashMap();
            long sizeInBytes = 0;
            for (int i = 0; i < batch.getRowCount(); i++) {
                String uri = text(uris, i);
                long size = sizes.get(i);
                long time = times.get(i);
                long milliseconds = time == Long.MIN_VALUE ? 0L : Math.floorDiv(time, 1000L);
                FileStatus file = new FileStatus(size, false, 1, size, milliseconds, path(uri));
                String at = text(hosts, i);
                if (!at.isEmpty()) {
                    if (!known.containsKey(at)) known.put(at, at.split("\n"));
                    String[] on = (String[]) known.get(at);
                    BlockLocation[] blocks = {new BlockLocation(on, on, 0L, size)};
                    file = new LocatedFileStatus(file, blocks);
                }
                Long changed = Long.valueOf(time);
                found[partitions.get(i)].add(new FileStatusWithMetadata(file,
                    etags == null || etags.isNull(i)
                    ? (scala.collection.immutable.Map)
                        new scala.collection.immutable.Map.Map1(FileCheck.TIME, changed)
                    : new scala.collection.immutable.Map.Map2(
                        FileCheck.TIME, changed, FileCheck.ETAG, text(etags, i))));
                names.add(uri);
                sizeInBytes += size;
            }
            return sizeInBytes;
        } finally {
            reader.close();
        }
    }

    /** Returns a path with the escapes of Spark's own listings, which input_file_name() shows. */
    static Path path(String uri) {
        URI parts = URI.create(uri);
        String authority = parts.getRawAuthority();
        return new Path(parts.getScheme(), authority == null ? "" : authority, parts.getPath());
    }

    private static String text(VarCharVector texts, int at) {
        return new String(texts.get(at), StandardCharsets.UTF_8);
    }

    /** Returns the files, so that Spark's plans show how many there are, and the first ones. */
    @Override
    public SEQ rootPaths() {
        List paths = new ArrayList();
        for (int i = 0; i < names.length; i++) paths.add(path(names[i]));
        return (SEQ) PythonUtils.toSeq(paths);
    }

    /** Applies conditions on partition columns, which Spark applies nowhere else. */
    @Override
    public SEQ listFiles(SEQ partitionFilters, SEQ dataFilters) {
        boolean[] passing = PartitionValues.passing(partitionFilters, columns, values);
        List directories = new ArrayList();
        for (int i = 0; i < values.length; i++) {
            if (passing[i]) directories.add(new PartitionDirectory(values[i], files[i]));
        }
        return (SEQ) PythonUtils.toSeq(directories);
    }

    /** Returns Spark's scan of these files with tasks that end at about the same time near them. */
    PlacedTasks placed(RDD rows) {
        return new PlacedTasks(rows, tasks, executors);
    }

    @Override
    public String[] inputFiles() {
        return (String[]) names.clone();
    }

    @Override
    public void refresh() {}

    @Override
    public long sizeInBytes() {
        return sizeInBytes;
    }

    @Override
    public StructType partitionSchema() {
        return columns;
    }

    @Override
    public boolean equals(Object other) {
        return other instanceof PlannedFiles
            && Arrays.equals(identity, ((PlannedFiles) other).identity);
    }

    @Override
    public int hashCode() {
        return Arrays.hashCode(identity);
    }
}
