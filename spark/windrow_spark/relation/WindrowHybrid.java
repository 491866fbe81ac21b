package windrow;

import java.io.ByteArrayInputStream;
import java.io.IOException;
import java.lang.ref.WeakReference;
import java.net.URI;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.Iterator;
import java.util.List;
import java.util.Map;
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
import org.apache.spark.sql.SQLContext;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.Alias;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.BasePredicate;
import org.apache.spark.sql.catalyst.expressions.BoundReference;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.Predicate$;
import org.apache.spark.sql.catalyst.planning.PhysicalOperation$;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.Project;
import org.apache.spark.sql.execution.SparkStrategy;
import org.apache.spark.sql.execution.UnionExec;
import org.apache.spark.sql.execution.datasources.DataSourceStrategy$;
import org.apache.spark.sql.execution.datasources.FileFormat;
import org.apache.spark.sql.execution.datasources.FileIndex;
import org.apache.spark.sql.execution.datasources.HadoopFsRelation;
import org.apache.spark.sql.execution.datasources.LogicalRelation;
import org.apache.spark.sql.execution.datasources.PartitionDirectory;
import org.apache.spark.sql.sources.BaseRelation;
import org.apache.spark.sql.sources.Filter;
import org.apache.spark.sql.sources.TableScan;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.util.ArrowUtils$;
import org.apache.spark.sql.vectorized.ArrowColumnVector;
import org.apache.spark.sql.vectorized.ColumnVector;
import org.apache.spark.sql.vectorized.ColumnarBatch;
import scala.Function1;
import scala.Option;
import scala.Tuple3;
import scala.runtime.AbstractPartialFunction;

/** Scans in which Spark's own readers take part. Runs on the driver only. */
public final class WindrowHybrid {
    /** Makes the objects that Python asks for. */
    public static final class Factory {
        /** From now on, plans scans of our relations in a session as hybrids. */
        public void plan(SparkSession session) {
            SEQ known = session.experimental().extraStrategies();
            for (int i = 0; i < known.size(); i++) if (known.apply(i) instanceof Strategy) return;
            List strategies = new ArrayList();
            strategies.add(new Strategy());
            for (int i = 0; i < known.size(); i++) strategies.add(known.apply(i));
            session.experimental().extraStrategies_$eq((SEQ) PythonUtils.toSeq(strategies));
        }

        /** Returns the files of a plan as one of Spark's own tables, without a listing. */
        public HadoopFsRelation files(
                SparkSession session, FileFormat format, Map options, String data,
                String partition, byte[] values, byte[] files)
                throws IOException {
            StructType columns = (StructType) DataType.fromJson(partition);
            return new HadoopFsRelation(
                new PlannedFiles(columns, values, files), columns,
                (StructType) DataType.fromJson(data), Option.empty(), format,
                (scala.collection.immutable.Map) PythonUtils.toScalaMap(options), session);
        }

        /** Returns the rows of some groups as a relation; Spark's plans show its label. */
        public BaseRelation groups(SparkSession session, String columns, RDD rows, String label) {
            return new PlannedGroups(session, (StructType) DataType.fromJson(columns), rows, label);
        }
    }

    /** The rows of a plan's groups. */
    public static final class PlannedGroups extends BaseRelation implements TableScan {
        private final SparkSession session;
        private final StructType columns;
        private final RDD rows;
        private final String label;

        PlannedGroups(SparkSession session, StructType columns, RDD rows, String label) {
            this.session = session;
            this.columns = columns;
            this.rows = rows;
            this.label = label;
        }

        public SQLContext sqlContext() {
            return session.sqlContext();
        }

        public StructType schema() {
            return columns;
        }

        public boolean needConversion() {
            return false;
        }

        public RDD buildScan() {
            return rows;
        }

        public String toString() {
            return label;
        }
    }

    /** Plans scans of our relations; Python decides how they are divided. */
    private static final class Strategy extends SparkStrategy {
        private static final int MAX_KNOWN = 1024;
        private static final Object[] NOTHING = new Object[0];

        private final Map known = new HashMap();

        public SEQ apply(LogicalPlan plan) {
            List made = new ArrayList();
            Option found = PhysicalOperation$.MODULE$.unapply(plan);
            if (found.isDefined()) scan(plan, (Tuple3) found.get(), made);
            return (SEQ) PythonUtils.toSeq(made);
        }

        private void scan(LogicalPlan plan, Tuple3 operation, List made) {
            if (!(operation._3() instanceof LogicalRelation)) return;
            LogicalRelation leaf = (LogicalRelation) operation._3();
            if (!(leaf.relation() instanceof WindrowRelation)) return;
            List conditions = new ArrayList();
            SEQ filters = (SEQ) operation._2();
            Map used = new HashMap();
            for (int i = 0; i < filters.size(); i++) {
                Expression filter = (Expression) filters.apply(i);
                use(filter, used);
                Option known = DataSourceStrategy$.MODULE$.translateFilter(filter, false);
                if (known.isDefined()) conditions.add(known.get());
            }
            SEQ projects = (SEQ) operation._1();
            for (int i = 0; i < projects.size(); i++) use((Expression) projects.apply(i), used);
            List columns = new ArrayList();
            for (int i = 0; i < leaf.output().size(); i++) {
                Attribute column = (Attribute) leaf.output().apply(i);
                if (used.containsKey(column.exprId())) columns.add(column.name());
            }
            WindrowRelation relation = (WindrowRelation) leaf.relation();
            Object[] parts = divided(
                relation,
                relation.described(
                    (String[]) columns.toArray(new String[columns.size()]),
                    (Filter[]) conditions.toArray(new Filter[conditions.size()]), true));
            if (parts.length == 0) return;
            List scans = new ArrayList();
            for (int i = 0; i < parts.length; i++) {
                LogicalPlan part = parts[i] instanceof BaseRelation
                    ? replaced(leaf, (BaseRelation) parts[i])
                    : renamed(leaf, (LogicalPlan) parts[i]);
                scans.add(planLater((LogicalPlan) plan.transform(new Replacing(leaf, part))));
            }
            made.add(scans.size() == 1 ? scans.get(0) : new UnionExec((SEQ) PythonUtils.toSeq(scans)));
        }

        /** Spark plans parts of a running query again: they keep their division. */
        private Object[] divided(WindrowRelation relation, String scan) {
            String query = relation.query();
            if (query == null) return relation.divided(scan);
            String key = query + relation.pin() + scan;
            synchronized (known) {
                WeakReference held = (WeakReference) known.get(key);
                Object[] parts = held == null ? null : (Object[]) held.get();
                if (parts != null) return parts;
            }
            Object[] parts = relation.divided(scan);
            if (parts.length == 0) parts = NOTHING;
            // The parts are kept as long as the query holds its files; NOTHING, for a while.
            for (int i = 0; i < parts.length; i++) {
                if (parts[i] instanceof HadoopFsRelation) {
                    ((PlannedFiles) ((HadoopFsRelation) parts[i]).location()).parts = parts;
                }
            }
            synchronized (known) {
                Iterator all = known.values().iterator();
                while (all.hasNext()) if (((WeakReference) all.next()).get() == null) all.remove();
                if (known.size() >= MAX_KNOWN) known.clear();
                known.put(key, new WeakReference(parts));
            }
            return parts;
        }

        private static void use(Expression expression, Map used) {
            SEQ attributes = (SEQ) expression.references().toSeq();
            for (int i = 0; i < attributes.size(); i++) {
                used.put(((Attribute) attributes.apply(i)).exprId(), Boolean.TRUE);
            }
        }

        /** Returns the same columns of another relation; the leaf's further arguments differ by version. */
        private static LogicalPlan replaced(LogicalRelation leaf, BaseRelation relation) {
            Object[] arguments = new Object[leaf.productArity()];
            for (int i = 1; i < arguments.length; i++) arguments[i] = leaf.productElement(i);
            arguments[0] = relation;
            return (LogicalPlan) leaf.makeCopy(arguments);
        }

        /** Returns a plan whose columns have the names and ids of the leaf's columns. */
        private static LogicalPlan renamed(LogicalRelation leaf, LogicalPlan part) {
            Map known = new HashMap();
            for (int i = 0; i < leaf.output().size(); i++) {
                Attribute column = (Attribute) leaf.output().apply(i);
                known.put(column.name(), column);
            }
            List columns = new ArrayList();
            for (int i = 0; i < part.output().size(); i++) {
                Attribute column = (Attribute) part.output().apply(i);
                Attribute as = (Attribute) known.get(column.name());
                columns.add(new Alias(
                    column, as.name(), as.exprId(), as.qualifier(), Option.empty(),
                    (SEQ) PythonUtils.toSeq(new ArrayList())));
            }
            return new Project((SEQ) PythonUtils.toSeq(columns), part);
        }
    }

    /** Replaces one plan with another. */
    private static final class Replacing extends AbstractPartialFunction {
        private final LogicalPlan out;
        private final LogicalPlan in;

        Replacing(LogicalPlan out, LogicalPlan in) {
            this.out = out;
            this.in = in;
        }

        public boolean isDefinedAt(Object node) {
            return node == out;
        }

        public Object applyOrElse(Object node, Function1 other) {
            return node == out ? in : other.apply(node);
        }
    }

    /** Replaces partition columns with their positions in a row of partition values. */
    private static final class Placing extends AbstractPartialFunction {
        private final StructType columns;

        Placing(StructType columns) {
            this.columns = columns;
        }

        public boolean isDefinedAt(Object node) {
            return node instanceof Attribute;
        }

        public Object applyOrElse(Object node, Function1 other) {
            if (!isDefinedAt(node)) return other.apply(node);
            int at = columns.fieldIndex(((Attribute) node).name());
            return new BoundReference(at, columns.fields()[at].dataType(), true);
        }
    }

    /** The files of a plan, by the values of their partition columns. */
    public static final class PlannedFiles implements FileIndex {
        private final StructType columns;
        private final InternalRow[] values;
        private final FileStatus[][] files;
        private final String[] names;
        private final long sizeInBytes;
        private final byte[] identity;
        private Object[] parts;

        PlannedFiles(StructType columns, byte[] values, byte[] files) throws IOException {
            this.columns = columns;
            this.identity = files;
            BufferAllocator memory = ArrowUtils$.MODULE$.rootAllocator()
                .newChildAllocator("windrow", 0L, Long.MAX_VALUE);
            try {
                this.values = values(values, columns.fields().length, memory);
                List[] found = new List[this.values.length];
                for (int i = 0; i < found.length; i++) found[i] = new ArrayList();
                List names = new ArrayList();
                this.sizeInBytes = read(files, memory, found, names);
                this.names = (String[]) names.toArray(new String[names.size()]);
                this.files = new FileStatus[found.length][];
                for (int i = 0; i < found.length; i++) {
                    this.files[i] = (FileStatus[]) found[i].toArray(new FileStatus[found[i].size()]);
                }
            } finally {
                memory.close();
            }
        }

        private static InternalRow[] values(byte[] stream, int width, BufferAllocator memory)
                throws IOException {
            ArrowStreamReader reader = new ArrowStreamReader(new ByteArrayInputStream(stream), memory);
            try {
                reader.loadNextBatch();
                VectorSchemaRoot batch = reader.getVectorSchemaRoot();
                ColumnVector[] vectors = new ColumnVector[width];
                // Without partition columns there is one unused vector, as a batch needs one.
                for (int i = 0; i < width; i++) vectors[i] = new ArrowColumnVector(batch.getVector(i));
                ColumnarBatch rows = new ColumnarBatch(vectors, batch.getRowCount());
                InternalRow[] copies = new InternalRow[batch.getRowCount()];
                for (int i = 0; i < copies.length; i++) copies[i] = rows.getRow(i).copy();
                return copies;
            } finally {
                reader.close();
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
                Map known = new HashMap();
                long sizeInBytes = 0;
                for (int i = 0; i < batch.getRowCount(); i++) {
                    String uri = text(uris, i);
                    long size = sizes.get(i);
                    // Only `PlannedFormat.java` reads the time, in microseconds.
                    FileStatus file = new FileStatus(size, false, 1, size, times.get(i), path(uri));
                    String at = text(hosts, i);
                    if (!at.isEmpty()) {
                        if (!known.containsKey(at)) known.put(at, at.split("\n"));
                        String[] on = (String[]) known.get(at);
                        BlockLocation[] blocks = {new BlockLocation(on, on, 0L, size)};
                        file = new LocatedFileStatus(file, blocks);
                    }
                    found[partitions.get(i)].add(file);
                    names.add(uri);
                    sizeInBytes += size;
                }
                return sizeInBytes;
            } finally {
                reader.close();
            }
        }

        /** Returns a path with the escapes of Spark's own listings, which input_file_name() shows. */
        private static Path path(String uri) {
            return new Path("file", "", URI.create(uri).getPath());
        }

        private static String text(VarCharVector texts, int at) {
            return new String(texts.get(at), StandardCharsets.UTF_8);
        }

        /** Returns the files, so that Spark's plans show how many there are, and the first ones. */
        public SEQ rootPaths() {
            List paths = new ArrayList();
            for (int i = 0; i < names.length; i++) paths.add(path(names[i]));
            return (SEQ) PythonUtils.toSeq(paths);
        }

        /** Applies conditions on partition columns, which Spark applies nowhere else. */
        public SEQ listFiles(SEQ partitionFilters, SEQ dataFilters) {
            BasePredicate[] conditions = new BasePredicate[partitionFilters.size()];
            for (int i = 0; i < conditions.length; i++) {
                Expression filter = (Expression) partitionFilters.apply(i);
                conditions[i] = Predicate$.MODULE$.createInterpreted(
                    (Expression) filter.transform(new Placing(columns)));
            }
            List directories = new ArrayList();
            for (int i = 0; i < values.length; i++) {
                boolean passes = true;
                for (int j = 0; passes && j < conditions.length; j++) {
                    passes = conditions[j].eval(values[i]);
                }
                if (passes) directories.add(PartitionDirectory.apply(values[i], files[i]));
            }
            return (SEQ) PythonUtils.toSeq(directories);
        }

        public String[] inputFiles() {
            return (String[]) names.clone();
        }

        public void refresh() {}

        public long sizeInBytes() {
            return sizeInBytes;
        }

        public StructType partitionSchema() {
            return columns;
        }

        public boolean equals(Object other) {
            return other instanceof PlannedFiles
                && Arrays.equals(identity, ((PlannedFiles) other).identity);
        }

        public int hashCode() {
            return Arrays.hashCode(identity);
        }
    }
}
