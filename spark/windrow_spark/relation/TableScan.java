package windrow;

import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import org.apache.spark.SparkContext;
import org.apache.spark.api.python.PythonUtils;
import org.apache.spark.rdd.RDD;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.catalyst.expressions.And;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.AttributeSet;
import org.apache.spark.sql.catalyst.expressions.DynamicPruningExpression;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.Literal;
import org.apache.spark.sql.catalyst.expressions.Literal$;
import org.apache.spark.sql.catalyst.expressions.PlanExpression;
import org.apache.spark.sql.catalyst.expressions.package$AttributeSeq;
import org.apache.spark.sql.catalyst.plans.QueryPlan;
import org.apache.spark.sql.catalyst.plans.QueryPlan$;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.Project;
import org.apache.spark.sql.catalyst.plans.physical.HashPartitioning;
import org.apache.spark.sql.catalyst.plans.physical.Partitioning;
import org.apache.spark.sql.catalyst.trees.TreeNode;
import org.apache.spark.sql.execution.ColumnarToRowExec;
import org.apache.spark.sql.execution.FileSourceScanExec;
import org.apache.spark.sql.execution.ScalarSubquery;
import org.apache.spark.sql.execution.SparkPlan;
import org.apache.spark.sql.execution.WholeStageCodegenExec$;
import org.apache.spark.sql.execution.datasources.FileSourceStrategy$;
import org.apache.spark.sql.execution.datasources.HadoopFsRelation;
import org.apache.spark.sql.execution.datasources.LogicalRelation;
import org.apache.spark.sql.execution.metric.SQLMetric;
import org.apache.spark.sql.execution.metric.SQLMetrics$;
import org.apache.spark.sql.internal.SQLConf;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;
import scala.Function1;
import scala.reflect.ClassTag$;
import scala.runtime.AbstractPartialFunction;

/**
 * The scan of a table in a physical plan. It asks Python for its plan when it runs, and so after
 * the subqueries among its conditions. What tasks need of it travels without its conditions.
 */
public final class TableScan extends SparkPlan {
    // Marks of Spark's for the columns within `_metadata`.
    private static final String CONSTANT = "__file_source_constant_metadata_col";
    private static final String GENERATED = "__file_source_generated_metadata_col";

    private final transient LogicalRelation leaf;
    private final SEQ columns;
    private final transient SEQ attributes;
    private final transient SEQ partitionFilters;
    private final transient SEQ dataFilters;
    private final boolean exact;
    private final int buckets;
    private final boolean columnar;
    /** Of the thread that plans the query, and mostly runs it. */
    private final transient Properties planner;
    private transient RDD rows;
    private transient scala.collection.immutable.Map metrics;

    /**
     * @param leaf Our relation, and the columns of the query that are its.
     * @param columns The columns to return: of files, then of partitions, then of `_metadata`.
     * @param attributes These, and further ones that conditions use.
     * @param partitionFilters Conditions on partition columns, which no other node applies.
     * @param dataFilters Conditions on other columns, which another node applies again.
     * @param exact Whether every row that is read is one of the query's.
     * @param buckets How many tasks read one bucket each; 0 if groups may hold several.
     */
    public TableScan(
            LogicalRelation leaf, SEQ columns, SEQ attributes, SEQ partitionFilters,
            SEQ dataFilters, boolean exact, int buckets) {
        this.leaf = leaf;
        this.columns = columns;
        this.attributes = attributes;
        this.partitionFilters = partitionFilters;
        this.dataFilters = dataFilters;
        this.exact = exact;
        this.buckets = buckets;
        this.columnar = isColumnar();
        this.planner = files().sparkSession().sparkContext().getLocalProperties();
    }

    /** Tells whether both readers give batches. */
    private boolean isColumnar() {
        for (int i = 0; i < columns.size(); i++) {
            if (!PackedRows.canHold(column(i).dataType())) return false;
        }
        SQLConf conf = SQLConf.get();
        StructType schema = schemaOf(columns);
        return !index().names && conf.wholeStageEnabled()
            && !WholeStageCodegenExec$.MODULE$.isTooManyFields(conf, schema)
            && files().fileFormat().supportBatch(
                session() == null ? files().sparkSession() : (SparkSession) session(), schema);
    }

    private HadoopFsRelation files() {
        return (HadoopFsRelation) leaf.relation();
    }

    private TableIndex index() {
        return (TableIndex) files().location();
    }

    private Attribute column(int at) {
        return (Attribute) columns.apply(at);
    }

    @Override
    public SEQ output() {
        return columns;
    }

    // --- what Scala would write for a leaf and a case class ---

    @Override
    public SEQ children() {
        return seq(new ArrayList());
    }

    @Override
    public TreeNode mapChildren(Function1 change) {
        return this;
    }

    @Override
    public TreeNode withNewChildrenInternal(ISEQ children) {
        return this;
    }

    @Override
    public int productArity() {
        return 7;
    }

    @Override
    public Object productElement(int at) {
        switch (at) {
            case 0: return leaf;
            case 1: return columns;
            case 2: return attributes;
            case 3: return partitionFilters;
            case 4: return dataFilters;
            case 5: return Boolean.valueOf(exact);
            default: return Integer.valueOf(buckets);
        }
    }

    @Override
    public boolean canEqual(Object other) {
        return other instanceof TableScan;
    }

    @Override
    public boolean equals(Object other) {
        if (!(other instanceof TableScan)) return false;
        TableScan scan = (TableScan) other;
        return files().equals(scan.files()) && columns.equals(scan.columns)
            && partitionFilters.equals(scan.partitionFilters)
            && dataFilters.equals(scan.dataFilters) && exact == scan.exact
            && buckets == scan.buckets;
    }

    @Override
    public int hashCode() {
        return 31 * files().hashCode() + columns.hashCode();
    }

    @Override
    public AttributeSet producedAttributes() {
        // Conditions on partition columns may use such as are not returned.
        return outputSet().$plus$plus(leaf.outputSet());
    }

    /** Equal scans of two parts of a query are equal after this, so that Spark reads them once. */
    @Override
    public QueryPlan doCanonicalize() {
        // By their places in the table: the first of a scan is another one than that of the next.
        package$AttributeSeq all = new package$AttributeSeq(leaf.output());
        List normal = new ArrayList();
        for (int i = 0; i < columns.size(); i++) {
            normal.add(QueryPlan$.MODULE$.normalizeExpressions(column(i), all));
        }
        return new TableScan(
            leaf, seq(normal), seq(new ArrayList()),
            QueryPlan$.MODULE$.normalizePredicates(used(partitionFilters), all),
            QueryPlan$.MODULE$.normalizePredicates(used(dataFilters), all), exact, buckets);
    }

    private static SEQ used(SEQ filters) {
        List used = new ArrayList();
        for (int i = 0; i < filters.size(); i++) {
            if (!isUnused((Expression) filters.apply(i))) used.add(filters.apply(i));
        }
        return seq(used);
    }

    /** Tells whether Spark has dropped a condition that only running another part would give. */
    private static boolean isUnused(Expression filter) {
        return filter instanceof DynamicPruningExpression
            && ((DynamicPruningExpression) filter).child().equals(Literal$.MODULE$.TrueLiteral());
    }

    @Override
    public Partitioning outputPartitioning() {
        return buckets == 0 ? super.outputPartitioning()
            : new HashPartitioning(BucketUse.keys(index().bucketColumns(), columns), buckets);
    }

    // --- how plans show it ---

    @Override
    public String nodeName() {
        return "Scan " + index();
    }

    @Override
    public String simpleString(int maxFields) {
        return nodeName() + " " + columns.mkString("[", ",", "]") + details(", ");
    }

    @Override
    public String verboseStringWithOperatorId() {
        return formattedNodeName() + "\nOutput: "
            + columns.mkString("[", ", ", "]") + details("\n") + "\n";
    }

    private String details(String between) {
        StringBuilder text = new StringBuilder();
        if (partitionFilters.size() > 0) {
            text.append(between).append("PartitionFilters: ")
                .append(partitionFilters.mkString("[", ", ", "]"));
        }
        if (dataFilters.size() > 0) {
            text.append(between).append("DataFilters: ").append(dataFilters.mkString("[", ", ", "]"));
        }
        if (buckets > 0) text.append(between).append("Buckets: ").append(buckets);
        if (index().limit != TableIndex.NO_LIMIT) {
            text.append(between).append("Limit: ").append(index().limit);
        }
        return text.append(between).append("ReadSchema: ").append(schemaOf(columns).catalogString()).toString();
    }

    @Override
    public scala.collection.immutable.Map metrics() {
        if (metrics == null) {
            Map all = new HashMap();
            SparkContext context = sparkContext();
            all.put("numOutputRows", SQLMetrics$.MODULE$.createMetric(context, "number of output rows"));
            all.put("numFiles", SQLMetrics$.MODULE$.createMetric(context, "number of files planned"));
            all.put("numGroups", SQLMetrics$.MODULE$.createMetric(context, "number of split groups"));
            all.put("nativeFiles",
                SQLMetrics$.MODULE$.createMetric(context, "files for Spark's own reader"));
            all.put("packedFiles",
                SQLMetrics$.MODULE$.createMetric(context, "files read from packs"));
            all.put("filesSize",
                SQLMetrics$.MODULE$.createMetric(context, "bytes of files planned"));
            metrics = (scala.collection.immutable.Map) PythonUtils.toScalaMap(all);
        }
        return metrics;
    }

    // --- rows ---

    @Override
    public boolean supportsColumnar() {
        return columnar;
    }

    @Override
    public RDD doExecuteColumnar() {
        return planned();
    }

    @Override
    public RDD doExecute() {
        return planned();
    }

    private synchronized RDD planned() {
        if (rows != null) return rows;
        SEQ conditions = evaluated();
        ScanAnswer answer =
            (ScanAnswer) index().answer(request(conditions), (SparkSession) session());
        describe(answer);
        SQLMetric count = longMetric("numOutputRows");
        List parts = new ArrayList();
        if (answer.packs != null) {
            // The plan says which rows are wanted, of smaller pieces than Spark's reader leaves out.
            RDD all = nativeRows(answer.packs, seq(new ArrayList()));
            parts.add(ScannedRows.counted(((PackFiles) answer.packs.location()).placed(all), count));
        }
        if (answer.groups != null) {
            parts.add(columnar ? ScannedRows.counted(answer.groups, count)
                : ScannedRows.projected(
                    answer.groups, schemaOf(columns), index().names, count));
        }
        if (answer.files != null) {
            RDD all = nativeRows(answer.files, conditions);
            parts.add(ScannedRows.counted(
                ((PlannedFiles) answer.files.location()).placed(all), count));
        }
        if (buckets > 0 && parts.isEmpty()) {
            rows = sparkContext().parallelize(
                seq(new ArrayList()), buckets, ClassTag$.MODULE$.Any());
        } else if (buckets > 0) {
            rows = BucketUse.checked(
                (RDD) parts.get(0), BucketUse.keys(index().bucketColumns(), columns), columns,
                buckets, index().toString());
        } else if (parts.isEmpty()) {
            rows = sparkContext().emptyRDD(ClassTag$.MODULE$.Any());
        } else {
            rows = parts.size() == 1 ? (RDD) parts.get(0)
                : sparkContext().union(seq(parts), ClassTag$.MODULE$.Any());
        }
        return rows;
    }

    private ObjectNode request(SEQ conditions) {
        ObjectNode request = TableIndex.request("scan");
        request.put("columnar", columnar);
        request.put("names", index().names);
        ArrayNode names = request.putArray("columns");
        ObjectNode types = request.putObject("types");
        ArrayNode metadata = request.putArray("metadata");
        boolean numbered = false;
        for (int i = 0; i < columns.size(); i++) {
            Attribute column = column(i);
            if (column.metadata().contains(GENERATED)) numbered = true;
            else if (column.metadata().contains(CONSTANT)) metadata.add(column.name());
            else {
                names.add(column.name());
                StructType schema = index().schema();
                DataType type = schema.apply(column.name()).dataType();
                // Spark leaves out fields of structs that the query does not need.
                if (!type.equals(column.dataType())) types.put(column.name(), column.dataType().sql());
            }
        }
        request.put("row_numbers", numbered);
        request.put("buckets", buckets);
        index().addConditions(request, partitionFilters, conditions);
        if (index().limit != TableIndex.NO_LIMIT) {
            request.put(exact ? "limit" : "first", index().limit);
        }
        return request;
    }

    /** Returns the conditions on columns of files, with the values of their subqueries. */
    private SEQ evaluated() {
        List usable = new ArrayList();
        for (int i = 0; i < dataFilters.size(); i++) {
            Expression filter = (Expression) dataFilters.apply(i);
            filter = filter instanceof DynamicPruningExpression
                ? RuntimeFilters.evaluated((DynamicPruningExpression) filter)
                : (Expression) filter.transform(new Evaluating());
            if (filter != null && isPlain(filter)) usable.add(filter);
        }
        return seq(usable);
    }

    private static boolean isPlain(Expression expression) {
        if (expression instanceof PlanExpression) return false;
        if (expression instanceof Attribute
            && ((Attribute) expression).metadata().contains(CONSTANT)) return false;
        SEQ children = (SEQ) expression.children();
        for (int i = 0; i < children.size(); i++) {
            if (!isPlain((Expression) children.apply(i))) return false;
        }
        return true;
    }

    /** Spark's own scan of some files, whose columns come in our order, as ours come in Spark's. */
    private RDD nativeRows(HadoopFsRelation some, SEQ conditions) {
        Object[] arguments = new Object[leaf.productArity()];
        for (int i = 1; i < arguments.length; i++) arguments[i] = leaf.productElement(i);
        arguments[0] = pruned(some);
        LogicalPlan plan = (LogicalPlan) leaf.makeCopy(arguments);
        List wanted = new ArrayList();
        boolean hasMetadata = false;
        for (int i = 0; i < columns.size(); i++) {
            if (leaf.outputSet().contains(column(i))) wanted.add(column(i));
            else hasMetadata = true;
        }
        for (int i = 0; hasMetadata && i < leaf.output().size(); i++) {
            Attribute attribute = (Attribute) leaf.output().apply(i);
            if (attribute.name().equals("_metadata")) wanted.add(attribute);
        }
        if (conditions.size() > 0) {
            Expression all = (Expression) conditions.apply(0);
            for (int i = 1; i < conditions.size(); i++) {
                all = new And(all, (Expression) conditions.apply(i));
            }
            plan = new org.apache.spark.sql.catalyst.plans.logical.Filter(all, plan);
        }
        SEQ plans = FileSourceStrategy$.MODULE$.apply(new Project(seq(wanted), plan));
        SparkPlan scan = (SparkPlan) plans.apply(0);
        while (!(scan instanceof FileSourceScanExec)) scan = (SparkPlan) scan.children().apply(0);
        if (columnar) return scan.executeColumnar();
        return scan.supportsColumnar() ? new ColumnarToRowExec(scan).execute() : scan.execute();
    }

    /** Returns files with the fields of structs that the query needs, as Spark has pruned ours. */
    private HadoopFsRelation pruned(HadoopFsRelation some) {
        StructField[] fields = (StructField[]) some.dataSchema().fields().clone();
        StructType ours = files().dataSchema();
        for (int i = 0; i < fields.length; i++) {
            if (!ours.getFieldIndex(fields[i].name()).isDefined()) continue;
            DataType type = ours.apply(fields[i].name()).dataType();
            fields[i] = new StructField(
                fields[i].name(), type, fields[i].nullable(), fields[i].metadata());
        }
        return new HadoopFsRelation(
            some.location(), some.partitionSchema(), new StructType(fields), some.bucketSpec(),
            some.fileFormat(), some.options(), some.sparkSession());
    }

    private static StructType schemaOf(SEQ columns) {
        StructType schema = new StructType();
        for (int i = 0; i < columns.size(); i++) {
            Attribute column = (Attribute) columns.apply(i);
            schema = schema.add(column.name(), column.dataType(), true);
        }
        return schema;
    }

    /** Tells Spark's UI and the query's jobs what was planned. */
    private void describe(ScanAnswer answer) {
        SparkContext context = sparkContext();
        List all = new ArrayList();
        String[] names = {"numFiles", "numGroups", "nativeFiles", "packedFiles", "filesSize"};
        long[] values = {
            answer.fileCount, answer.groupCount, answer.nativeCount, answer.packedCount,
            answer.filesSize};
        for (int i = 0; i < names.length; i++) {
            SQLMetric metric = longMetric(names[i]);
            metric.set(values[i]);
            all.add(metric);
        }
        String query = context.getLocalProperty(JobDescriptions.QUERY);
        SQLMetrics$.MODULE$.postDriverMetricUpdates(context, query, seq(all));
        // Jobs of an RDD belong to no query, but also note packs.
        JobDescriptions jobs = JobDescriptions.of(context);
        if (query != null) jobs.describe(query, planner, answer.description);
    }

    private static SEQ seq(List list) {
        return (SEQ) PythonUtils.toSeq(list);
    }

    /** Replaces subqueries that have run with their values. */
    private static final class Evaluating extends AbstractPartialFunction {
        @Override
        public boolean isDefinedAt(Object node) {
            return node instanceof ScalarSubquery;
        }

        @Override
        public Object applyOrElse(Object node, Function1 other) {
            if (!isDefinedAt(node)) return other.apply(node);
            ScalarSubquery subquery = (ScalarSubquery) node;
            return new Literal(subquery.eval(null), subquery.dataType());
        }
    }
}
