package windrow;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.IOException;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.atomic.AtomicLong;
import java.util.function.BiFunction;
import org.apache.hadoop.fs.Path;
import org.apache.spark.api.python.PythonUtils;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.catalyst.catalog.CatalogTable;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.Literal$;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.execution.datasources.DataSourceStrategy$;
import org.apache.spark.sql.execution.datasources.FileIndex;
import org.apache.spark.sql.execution.datasources.HadoopFsRelation;
import org.apache.spark.sql.internal.SQLConf;
import org.apache.spark.sql.sources.Filter;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.types.TimestampType;
import scala.Option;

/**
 * The files of a table's snapshot, as Spark's relations know them: nothing is listed, and Python
 * plans each scan. Runs on the driver only.
 */
public final class TableIndex implements FileIndex {
    static final long NO_LIMIT = -1L;
    private static final ObjectMapper JSON = new ObjectMapper();
    private static final AtomicLong PATHS = new AtomicLong();

    private final Table table;
    private final long sizeInBytes;
    /** Whether the size is that of the partitions that the query needs. */
    final boolean sized;
    /** How many rows the query needs of this scan. */
    final long limit;
    /** Whether a join or an aggregation can use the buckets. */
    final boolean inBuckets;
    /** Whether the query asks for the files of the rows, as input_file_name() does. */
    final boolean names;
    /** Whether the snapshot stays, whatever the application writes. */
    private final boolean settled;

    /** What all scans of a table have in common. */
    private static final class Table {
        final String pin;
        final String label;
        final StructType schema;
        final StructType partition;
        final BiFunction python;
        /** Whether each row of its files is one of its rows. */
        final boolean whole;
        /** The columns whose hash tells the bucket of each row, and the number of buckets. */
        final List bucketColumns;
        final int buckets;
        /** Whether there are values that depend on the session's time zone. */
        private final boolean timed;
        /** The same table after a write of this application; null unless a query has asked. */
        private Table successor;
        private PartitionValues values;
        private PartitionFigures figures;
        private String zone;
        private Boolean bucketed;

        Table(
                String pin, String label, StructType schema, StructType partition, boolean whole,
                List bucketColumns, int buckets, BiFunction python) {
            this.bucketColumns = bucketColumns;
            this.buckets = buckets;
            this.pin = pin;
            this.whole = whole;
            this.label = label;
            this.schema = schema;
            this.partition = partition;
            this.python = python;
            boolean timed = false;
            for (int i = 0; i < partition.fields().length; i++) {
                timed |= partition.fields()[i].dataType() instanceof TimestampType;
            }
            this.timed = timed;
        }

        /** Returns one and the same for all queries, so that they ask for its partitions once. */
        synchronized Table successor(String pin, String label) {
            if (successor == null || !successor.pin.equals(pin)) {
                successor = new Table(
                    pin, label, schema, partition, whole, bucketColumns, buckets, python);
            }
            return successor;
        }

        synchronized PartitionValues values(SparkSession session) {
            String now = timed ? SQLConf.get().sessionLocalTimeZone() : "";
            if (!now.equals(zone)) {
                ObjectNode request = request("partitions");
                try {
                    values = new PartitionValues(partition, (byte[]) answer(request, session));
                } catch (IOException error) {
                    throw new IllegalStateException(error.toString());
                }
                zone = now;
            }
            return values;
        }

        /** Returns what packs tell of columns; null if nothing. The columns are those last asked for. */
        synchronized PartitionFigures figures(List columns, SparkSession session) {
            if (figures == null || !figures.columns.equals(columns)) {
                ObjectNode request = request("figures");
                ArrayNode names = request.putArray("columns");
                for (int i = 0; i < columns.size(); i++) names.add((String) columns.get(i));
                Object stream = answer(request, session);
                try {
                    figures = stream == null ? null : new PartitionFigures(columns, (byte[]) stream);
                } catch (IOException error) {
                    throw new IllegalStateException(error.toString());
                }
            }
            return figures;
        }

        synchronized boolean isBucketed(SparkSession session) {
            if (bucketed == null) {
                bucketed = buckets == 0 ? Boolean.FALSE
                    : (Boolean) answer(request("buckets").put("count", buckets), session);
            }
            return bucketed.booleanValue();
        }

        Object answer(ObjectNode request, SparkSession session) {
            Object answer = Calls.answer(
                python, request.toString(), new Object[] {session, pin});
            // This is the only exception of which PySpark shows nothing but the message.
            if (answer instanceof String) throw new IllegalArgumentException((String) answer);
            return answer;
        }
    }

    TableIndex(
            String pin, String label, StructType schema, StructType partition, boolean whole,
            List bucketColumns, int buckets, long sizeInBytes, BiFunction python) {
        this(
            new Table(
                pin, label, schema, partition, whole, bucketColumns, buckets, python),
            sizeInBytes, false, NO_LIMIT, false, false, !follows(pin));
    }

    private static boolean follows(String pin) {
        try {
            JsonNode follows = ((JsonNode) JSON.readTree(pin)).get("follows");
            return follows != null && follows.asBoolean();
        } catch (IOException error) {
            throw new IllegalArgumentException(error.toString());
        }
    }

    private TableIndex(Table table, long sizeInBytes, boolean sized, long limit, boolean inBuckets,
            boolean names, boolean settled) {
        this.table = table;
        this.sized = sized;
        this.inBuckets = inBuckets;
        this.sizeInBytes = sizeInBytes;
        this.limit = limit;
        this.names = names;
        this.settled = settled;
    }

    /** Tells whether a query that is not planned yet may read a later snapshot instead. */
    boolean isOpen() {
        return !settled;
    }

    /** Returns the index with a snapshot that stays. */
    TableIndex settled() {
        return new TableIndex(table, sizeInBytes, sized, limit, inBuckets, names, true);
    }

    /** Returns the index of a later snapshot, which stays. */
    TableIndex moved(String pin, String label, long sizeInBytes) {
        Table later = table.successor(pin, label);
        return new TableIndex(later, sizeInBytes, sized, limit, inBuckets, names, true);
    }

    TableIndex limited(long rows) {
        return new TableIndex(table, sizeInBytes, sized, rows, inBuckets, names, settled);
    }

    TableIndex bucketed() {
        return new TableIndex(table, sizeInBytes, sized, limit, true, names, settled);
    }

    TableIndex naming() {
        return new TableIndex(table, sizeInBytes, sized, limit, inBuckets, true, settled);
    }

    TableIndex sized(long bytes) {
        return new TableIndex(table, bytes, true, limit, inBuckets, names, settled);
    }

    /** Returns all columns of the table, in its order. */
    StructType schema() {
        return table.schema;
    }

    PartitionValues values() {
        return table.values((SparkSession) SparkSession.active());
    }

    PartitionFigures figures(List columns) {
        return table.figures(columns, (SparkSession) SparkSession.active());
    }

    /** Returns the columns whose hash tells the bucket of each row. */
    List bucketColumns() {
        return table.bucketColumns;
    }

    /** Returns the number of buckets; 0 if it is not certain in which bucket each file is. */
    int buckets() {
        return table.isBucketed((SparkSession) SparkSession.active()) ? table.buckets : 0;
    }

    /** Tells whether the inventory's rows are the table's, of which a filter leaves out none. */
    boolean isWhole() {
        return table.whole;
    }

    /** Returns the text that says what is read. */
    public String pin() {
        return table.pin;
    }

    /** Begins a request; `use` says what is wanted. */
    static ObjectNode request(String use) {
        return JSON.createObjectNode().put("use", use);
    }

    /** Returns Python's answer for a session, whose settings count. */
    Object answer(ObjectNode request, SparkSession session) {
        return table.answer(request, session);
    }

    /**
     * Lets Python carry out a statement that writes: in its own thread, to which the properties of
     * its jobs belong.
     *
     * @param entry The table in Spark's own catalog that names this one, if there is one.
     */
    void write(ObjectNode request, SparkSession session, LogicalPlan query, Option entry) {
        Object name = entry.isDefined() ? ((CatalogTable) entry.get()).identifier() : null;
        Object answer = table.python.apply(
            request.toString(), new Object[] {session, table.pin, query, name});
        if (answer instanceof String) throw new IllegalArgumentException((String) answer);
    }

    /** Adds the conditions of a scan to a request: exact ones on partitions, and weaker ones. */
    void addConditions(ObjectNode request, SEQ partitionFilters, SEQ dataFilters) {
        ArrayNode conditions = request.putArray("conditions");
        add(conditions, partitionFilters);
        add(conditions, dataFilters);
        List certain = new ArrayList();
        for (int i = 0; i < partitionFilters.size(); i++) certain.add(partitionFilters.apply(i));
        Expression none = Literal$.MODULE$.FalseLiteral();
        if (dataFilters.contains(none)) certain.add(none);
        if (certain.isEmpty()) return;
        boolean[] passing = values().passing((SEQ) PythonUtils.toSeq(certain));
        boolean all = true;
        for (int i = 0; i < passing.length; i++) all &= passing[i];
        if (all) return;
        ArrayNode ranges = request.putArray("partitions");
        for (int first = 0; first < passing.length; first++) {
            if (!passing[first]) continue;
            int end = first + 1;
            while (end < passing.length && passing[end]) end++;
            ranges.addArray().add(first).add(end);
            first = end;
        }
    }

    private static void add(ArrayNode conditions, SEQ filters) {
        for (int i = 0; i < filters.size(); i++) {
            Option known = DataSourceStrategy$.MODULE$.translateFilter(
                (Expression) filters.apply(i), false);
            if (known.isDefined()) conditions.add(Conditions.of((Filter) known.get()));
        }
    }

    /**
     * Of no file system, so that Spark itself never writes there; a new one each time, as Spark
     * would refuse in its own words to overwrite what the query reads.
     */
    @Override
    public SEQ rootPaths() {
        List paths = new ArrayList();
        String label = table.label.replace(' ', '/');
        paths.add(new Path("windrow", null, "/" + label + "/" + PATHS.incrementAndGet()));
        return (SEQ) PythonUtils.toSeq(paths);
    }

    /** Lists the files of a plan for Spark's own scan, in sessions that do not know ours. */
    @Override
    public SEQ listFiles(SEQ partitionFilters, SEQ dataFilters) {
        ObjectNode request = request("files");
        addConditions(request, partitionFilters, dataFilters);
        Object files = answer(request, (SparkSession) SparkSession.active());
        SEQ none = (SEQ) PythonUtils.toSeq(new ArrayList());
        return files == null ? none : ((HadoopFsRelation) files).location().listFiles(none, none);
    }

    @Override
    public String[] inputFiles() {
        List uris = (List) answer(request("uris"), (SparkSession) SparkSession.active());
        return (String[]) uris.toArray(new String[uris.size()]);
    }

    /** Changes nothing: a relation reads one snapshot. */
    @Override
    public void refresh() {}

    @Override
    public long sizeInBytes() {
        return sizeInBytes;
    }

    @Override
    public StructType partitionSchema() {
        return table.partition;
    }

    /** Indexes of one table, snapshot and conditions are equal, so that Spark reads them once. */
    @Override
    public boolean equals(Object other) {
        if (!(other instanceof TableIndex)) return false;
        TableIndex index = (TableIndex) other;
        // A plan with another size is another plan, or the optimizer would drop it.
        return table.pin.equals(index.table.pin) && sizeInBytes == index.sizeInBytes
            && limit == index.limit && inBuckets == index.inBuckets && names == index.names;
    }

    @Override
    public int hashCode() {
        return table.pin.hashCode();
    }

    /** Returns the name in Spark's plans and its UI. */
    @Override
    public String toString() {
        return table.label;
    }
}
