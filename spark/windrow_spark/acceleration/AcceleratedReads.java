package windrow;

import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.Set;
import java.util.WeakHashMap;
import java.util.function.BiFunction;
import org.apache.hadoop.fs.Path;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.SparkSessionExtensions;
import org.apache.spark.sql.catalyst.QueryPlanningTracker;
import org.apache.spark.sql.catalyst.QueryPlanningTracker$;
import org.apache.spark.sql.catalyst.TableIdentifier;
import org.apache.spark.sql.catalyst.catalog.CatalogTable;
import org.apache.spark.sql.catalyst.catalog.HiveTableRelation;
import org.apache.spark.sql.catalyst.plans.logical.Command;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.rules.Rule;
import org.apache.spark.sql.catalyst.trees.TreeNode;
import org.apache.spark.sql.execution.QueryExecution;
import org.apache.spark.sql.execution.datasources.CatalogFileIndex;
import org.apache.spark.sql.execution.datasources.FileIndex;
import org.apache.spark.sql.execution.datasources.HadoopFsRelation;
import org.apache.spark.sql.execution.datasources.InMemoryFileIndex;
import org.apache.spark.sql.execution.datasources.LogicalRelation;
import org.apache.spark.sql.execution.datasources.LogicalRelation$;
import org.apache.spark.sql.execution.datasources.text.TextFileFormat;
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2Relation;
import org.apache.spark.sql.internal.SQLConf;
import org.apache.spark.sql.types.StructType;
import scala.Function1;
import scala.Option;
import scala.runtime.AbstractFunction1;
import scala.runtime.AbstractPartialFunction;

/**
 * Puts relations of ours in the place of Spark's, where Python says that they have the same rows.
 * It runs among the optimizer's rules, before Spark prunes partitions and lists their files. What
 * the analyzer has resolved stays Spark's own, so that caches and writes know the files.
 */
public final class AcceleratedReads extends Rule {
    private static final ObjectMapper JSON = new ObjectMapper();
    private static final String SETTING = "spark.windrow.accelerate";
    static final String OFF = "the session has set " + SETTING + "=false";
    private static final Map QUERIES = new WeakHashMap();
    private static final Map PREPARED = new WeakHashMap();
    private static volatile BiFunction python;
    private static volatile boolean writes;

    private final Object session;

    AcceleratedReads(Object session) {
        this.session = session;
    }

    /** Switches the rule on and off for Python, and tells what it has decided. */
    public static final class Factory {
        /**
         * Sets the function that returns a relation of ours, or why there is none, and, if `writes`,
         * what carries out a write, or why Spark does; null if off.
         */
        public void answerBy(BiFunction function, boolean writes) {
            AcceleratedReads.writes = writes;
            python = function;
        }

        /** From now on, the sessions that share these extensions have the rule. */
        public void extend(SparkSessionExtensions extensions) {
            synchronized (PREPARED) {
                if (PREPARED.put(extensions, Boolean.TRUE) != null) return;
            }
            extensions.injectOptimizerRule(new Builder(false));
            extensions.injectPlannerStrategy(new Builder(true));
        }

        /** Returns for each table or path of an optimized query why it stays Spark's, or "". */
        public Map decisions(QueryExecution query) {
            Query decided = queryOf(query.tracker());
            synchronized (decided) {
                return new LinkedHashMap(decided.outcomes);
            }
        }
    }

    private static final class Builder extends AbstractFunction1 {
        private final boolean writes;

        Builder(boolean writes) {
            this.writes = writes;
        }

        @Override
        public Object apply(Object session) {
            if (writes) return new AcceleratedWrites(session);
            return new AcceleratedReads(session);
        }
    }

    /** Stands for what Spark reads through one of Hive's SerDes. */
    public static final class HiveFiles extends TextFileFormat {}

    /** What has been decided for a query; its rule runs several times, and for each subquery. */
    private static final class Query {
        final Map answers = new HashMap();
        final Map outcomes = new LinkedHashMap();
        boolean isNoted = false;
        Set targets = java.util.Collections.emptySet();
    }

    private static Query queryOf(Object tracker) {
        synchronized (QUERIES) {
            Query query = (Query) QUERIES.get(tracker);
            if (query == null) {
                query = new Query();
                QUERIES.put(tracker, query);
            }
            return query;
        }
    }

    @Override
    public TreeNode apply(TreeNode plan) {
        if (python == null) return plan;
        Option tracker = QueryPlanningTracker$.MODULE$.get();
        Query query = tracker.isDefined() ? queryOf(tracker.get()) : new Query();
        synchronized (query) {
            if (plan instanceof Command && !query.isNoted) {
                query.targets = OwnWrites.begin(
                    (LogicalPlan) plan, session, tracker.isDefined() ? tracker.get() : null);
                query.isNoted = true;
            }
            return plan.transform(new Replacing(query, (LogicalPlan) plan));
        }
    }

    private final class Replacing extends AbstractPartialFunction {
        private final Query query;
        private final LogicalPlan plan;

        Replacing(Query query, LogicalPlan plan) {
            this.query = query;
            this.plan = plan;
        }

        @Override
        public boolean isDefinedAt(Object node) {
            return node instanceof LogicalRelation || node instanceof HiveTableRelation
                || node instanceof DataSourceV2Relation;
        }

        @Override
        public Object applyOrElse(Object node, Function1 other) {
            if (!isDefinedAt(node)) return other.apply(node);
            if (node instanceof DataSourceV2Relation) {
                refuse((DataSourceV2Relation) node);
                return node;
            }
            LogicalRelation leaf = node instanceof HiveTableRelation
                ? asFiles((HiveTableRelation) node) : (LogicalRelation) node;
            if (!(leaf.relation() instanceof HadoopFsRelation)) return node;
            HadoopFsRelation theirs = (HadoopFsRelation) leaf.relation();
            if (theirs.location() instanceof TableIndex) return node;
            Object answer = decided(leaf, theirs);
            if (!(answer instanceof HadoopFsRelation)) return node;
            return withElement(leaf, 0, answer);
        }

        private Object decided(LogicalRelation leaf, HadoopFsRelation theirs) {
            ObjectNode request = request("relation");
            describe(request, leaf, theirs);
            String key = request.toString();
            if (query.answers.containsKey(key)) return query.answers.get(key);
            String path = request.path("path").asText();
            addWrites(request, path);
            Object answer = ask(request, new Object[] {session, theirs});
            query.answers.put(key, answer);
            query.outcomes.put(
                request.path("target").asText(), answer instanceof String ? answer : "");
            return answer;
        }

        private LogicalRelation asFiles(HiveTableRelation leaf) {
            CatalogTable table = leaf.tableMeta();
            StructType data = new StructType();
            StructType partition = new StructType();
            for (int i = 0; i < leaf.schema().fields().length; i++) {
                if (i < leaf.dataCols().size()) data = data.add(leaf.schema().fields()[i]);
                else partition = partition.add(leaf.schema().fields()[i]);
            }
            HadoopFsRelation files = new HadoopFsRelation(
                new CatalogFileIndex((SparkSession) session, table, 0L), partition, data,
                Option.empty(), new HiveFiles(), scala.collection.immutable.Map$.MODULE$.empty(),
                (SparkSession) session);
            LogicalRelation relation = LogicalRelation$.MODULE$.apply(files, table);
            return withElement(relation, 1, leaf.output());
        }

        private void refuse(DataSourceV2Relation node) {
            ObjectNode request = refused(
                node.name(), "Spark reads it through a data source of its own kind (V2)");
            if (query.answers.containsKey(request.toString())) return;
            Object answer = ask(request, new Object[] {session});
            query.answers.put(request.toString(), answer);
            query.outcomes.put(request.path("target").asText(), answer);
        }

        private void describe(
                ObjectNode request, LogicalRelation leaf, HadoopFsRelation theirs) {
            FileIndex index = theirs.location();
            SEQ roots = (SEQ) index.rootPaths();
            String path = roots.size() == 0 ? "" : OwnWrites.text((Path) roots.apply(0));
            String target = path;
            if (leaf.catalogTable().isDefined()) {
                CatalogTable table = (CatalogTable) leaf.catalogTable().get();
                target = named(table.identifier());
                request.put("table", target);
            }
            request.put("target", target);
            request.put("path", path);
            request.put("in_catalog", index instanceof CatalogFileIndex
                && theirs.partitionSchema().fields().length > 0);
            request.put("data", theirs.dataSchema().json());
            request.put("partition_schema", theirs.partitionSchema().json());
            request.put("format", theirs.fileFormat().getClass().getName());
            request.put("has_buckets", theirs.bucketSpec().isDefined());
            addOptions(request, theirs.options());
            if (isOff()) {
                request.put("refusal", OFF);
            } else if (leaf.isStreaming()) {
                request.put("refusal", "it is a part of a stream");
            } else if (!(index instanceof CatalogFileIndex || index instanceof InMemoryFileIndex
                    || index instanceof PathIndex)) {
                request.put("refusal",
                    "its files come from " + index.getClass().getSimpleName() + ", not from folders");
            } else if (roots.size() != 1) {
                request.put("refusal", "the query reads " + roots.size() + " paths at once");
            } else if (!(index instanceof CatalogFileIndex)
                    && !PathIndex.isInZone(index, theirs.partitionSchema(), theirs.options())) {
                request.put("refusal",
                    "Spark read the times in its folders in another time zone than the session's");
            } else if (theirs.fileFormat() instanceof HiveFiles && TableHints.namesFiles(plan)) {
                request.put("refusal", "Spark writes names of files differently for Hive's tables");
            } else if (OwnWrites.overlaps(query.targets, path)) {
                request.put("refusal", "the query writes to the files that it reads");
            }
        }
    }

    private static LogicalRelation withElement(LogicalRelation leaf, int at, Object element) {
        Object[] elements = new Object[leaf.productArity()];
        for (int i = 0; i < elements.length; i++) elements[i] = leaf.productElement(i);
        elements[at] = element;
        return (LogicalRelation) leaf.makeCopy(elements);
    }

    static boolean isOn() {
        return python != null;
    }

    static boolean areWritesOn() {
        return writes && isOn();
    }

    /** Begins a request; `use` says what is wanted. */
    static ObjectNode request(String use) {
        return JSON.createObjectNode().put("use", use);
    }

    /** Returns a request that only tells why Spark plans something. */
    static ObjectNode refused(String target, String refusal) {
        return request("refused").put("target", target).put("refusal", refusal);
    }

    /** Adds to a request what commands of this application write to a path. */
    static void addWrites(ObjectNode request, String path) {
        // In this order, as a command may end in between.
        request.put("running", OwnWrites.isRunning(path)).put("writes", OwnWrites.lastOf(path));
    }

    /** Returns Python's answer, or why there is none. */
    static Object ask(ObjectNode request, Object[] arguments) {
        BiFunction function = python;
        if (function == null) return "acceleration is off";
        try {
            return function.apply(request.toString(), arguments);
        } catch (RuntimeException error) {
            // Spark can answer the query without us.
            return "Python did not answer: " + error;
        }
    }

    /** Tells whether the session that is active has switched acceleration off for itself. */
    static boolean isOff() {
        return SQLConf.get().getConfString(SETTING, "true").equalsIgnoreCase("false");
    }

    static void addOptions(ObjectNode request, scala.collection.immutable.Map options) {
        ObjectNode texts = request.putObject("options");
        scala.collection.Iterator pairs = options.iterator();
        while (pairs.hasNext()) {
            scala.Tuple2 pair = (scala.Tuple2) pairs.next();
            texts.put((String) pair._1(), (String) pair._2());
        }
    }

    static String named(TableIdentifier table) {
        return table.database().isDefined() ? table.database().get() + "." + table.table() : table.table();
    }
}
