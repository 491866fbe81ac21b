package windrow;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.lang.ref.WeakReference;
import java.util.HashMap;
import java.util.Iterator;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Properties;
import java.util.WeakHashMap;
import java.util.function.BiFunction;
import org.apache.spark.SparkContext;
import org.apache.spark.rdd.RDD;
import org.apache.spark.scheduler.SparkListener;
import org.apache.spark.scheduler.SparkListenerEvent;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.SQLContext;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.catalyst.CatalystTypeConverters;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.InputFileBlockLength;
import org.apache.spark.sql.catalyst.expressions.InputFileBlockStart;
import org.apache.spark.sql.catalyst.expressions.InputFileName;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.execution.QueryExecution;
import org.apache.spark.sql.execution.SQLExecution$;
import org.apache.spark.sql.execution.datasources.LogicalRelation;
import org.apache.spark.sql.execution.ui.SparkListenerSQLExecutionEnd;
import org.apache.spark.sql.sources.*;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.Decimal;
import org.apache.spark.sql.types.StructType;
import scala.Product;

/** A table in a Spark session. Python plans each scan of it. Runs on the driver only. */
public final class WindrowRelation extends BaseRelation
        implements PrunedFilteredScan, InsertableRelation {
    private static final ObjectMapper JSON = new ObjectMapper();
    private static final Map OPERATORS = new HashMap();
    static {
        OPERATORS.put("And", "and");
        OPERATORS.put("Or", "or");
        OPERATORS.put("Not", "not");
        OPERATORS.put("IsNull", "is_null");
        OPERATORS.put("IsNotNull", "is_not_null");
        OPERATORS.put("EqualTo", "eq");
        OPERATORS.put("EqualNullSafe", "eq");
        OPERATORS.put("LessThan", "lt");
        OPERATORS.put("LessThanOrEqual", "le");
        OPERATORS.put("GreaterThan", "gt");
        OPERATORS.put("GreaterThanOrEqual", "ge");
        OPERATORS.put("In", "in");
        OPERATORS.put("StringStartsWith", "starts_with");
    }

    private final SparkSession session;
    private final StructType schema;
    private final long sizeInBytes;
    private final String label;
    private final String pin;
    private final BiFunction scans;
    private final String function;
    private final Planned planned = new Planned();

    /** Makes relations whose scans a Python function answers. */
    public static final class Factory {
        private BiFunction scans;

        public void answerBy(BiFunction scans) {
            this.scans = scans;
        }

        public WindrowRelation relation(
                SparkSession session, String schema, Number sizeInBytes, String label, String pin) {
            return new WindrowRelation(
                session, (StructType) DataType.fromJson(schema), sizeInBytes.longValue(), label,
                pin, scans, null);
        }
    }

    WindrowRelation(
            SparkSession session, StructType schema, long sizeInBytes, String label, String pin,
            BiFunction scans, String function) {
        this.session = session;
        this.schema = schema;
        this.sizeInBytes = sizeInBytes;
        this.label = label;
        this.pin = pin;
        this.scans = scans;
        this.function = function;
    }

    /** Returns this relation as a query reads it in which a function asks for the rows' files. */
    public WindrowRelation asked(String function) {
        return new WindrowRelation(
            session, schema, sizeInBytes, label, pin, scans, function);
    }

    /** Returns the function that asks for the rows' files; null if there is none. */
    public String function() {
        return function;
    }

    public SQLContext sqlContext() {
        return session.sqlContext();
    }

    public StructType schema() {
        return schema;
    }

    public long sizeInBytes() {
        return sizeInBytes;
    }

    /** Rows already have Spark's internal form. */
    public boolean needConversion() {
        return false;
    }

    public RDD buildScan(String[] columns, Filter[] filters) {
        String scan = described(columns, filters, false);
        String query = query();
        if (query != null) requireRule(query);
        RDD known = query == null ? null : planned.find(query + scan);
        if (known != null) return known;
        RDD rows = (RDD) answered(scan);
        if (query != null) planned.keep(query + scan, rows);
        return rows;
    }

    /** Refuses a query of a session without our rule, in which nothing tells us what it asks for. */
    private void requireRule(String query) {
        SEQ rules = ((SparkSession) SparkSession.active()).experimental().extraOptimizations();
        for (int i = 0; i < rules.size(); i++) {
            if (rules.apply(i).getClass().getName().equals("windrow.FileNames")) return;
        }
        QueryExecution running = SQLExecution$.MODULE$.getQueryExecution(Long.parseLong(query));
        String asks = running == null ? null : Functions.above(running.optimizedPlan(), this);
        if (asks == null) return;
        throw new IllegalArgumentException(
            asks + "() cannot be answered for " + label + ", as another session has read the table: "
            + "read it in this session too");
    }

    /** Returns the parts of a scan: Spark's own relations, and plans; none if it is not divided. */
    public Object[] divided(String scan) {
        return ((List) answered(scan)).toArray();
    }

    /** Is refused, in words that say how to write. */
    public void insert(Dataset rows, boolean overwrite) {
        answered(JSON.createObjectNode().put("inserts", true).toString());
    }

    public String pin() {
        return pin;
    }

    /** Returns the id of the running query: Spark plans its parts again, for the same answers. */
    public String query() {
        return session.sparkContext().getLocalProperty("spark.sql.execution.id");
    }

    public String described(String[] columns, Filter[] filters, boolean divided) {
        ObjectNode scan = JSON.createObjectNode();
        ArrayNode names = scan.putArray("columns");
        for (int i = 0; i < columns.length; i++) names.add(columns[i]);
        ArrayNode conditions = scan.putArray("conditions");
        for (int i = 0; i < filters.length; i++) conditions.add(condition(filters[i]));
        scan.put("divided", divided);
        scan.put("function", function);
        return scan.toString();
    }

    private Object answered(String scan) {
        Object answer = scans.apply(pin, scan);
        // This is the only exception of which PySpark shows nothing but the message.
        if (answer instanceof String) throw new IllegalArgumentException((String) answer);
        if (answer instanceof RDD) describe(((RDD) answer).name());
        else if (!((List) answer).isEmpty()) describe((String) ((List) answer).remove(0));
        return answer;
    }

    private void describe(String scan) {
        if (query() != null) Jobs.of(session.sparkContext()).describe(query(), scan);
    }

    /** The functions that ask for the files of rows. */
    public static final class Functions {
        /** Returns the function among some expressions; null if there is none. */
        public static String of(SEQ expressions) {
            String function = null;
            for (int i = 0; i < expressions.size(); i++) {
                Expression expression = (Expression) expressions.apply(i);
                function = first(function, named(expression));
                function = first(function, of((SEQ) expression.children()));
            }
            return function;
        }

        /** Returns the function of a block rather than input_file_name, as it is refused. */
        public static String first(String one, String other) {
            if (one == null || other == null) return one == null ? other : one;
            return one.equals("input_file_name") ? other : one;
        }

        /** Returns the function above a relation in an optimized plan, or in its subqueries. */
        static String above(LogicalPlan plan, WindrowRelation relation) {
            String function = holds(plan, relation) ? of(plan.expressions()) : null;
            SEQ children = (SEQ) plan.children();
            for (int i = 0; i < children.size(); i++) {
                function = first(function, above((LogicalPlan) children.apply(i), relation));
            }
            SEQ subqueries = plan.subqueries();
            for (int i = 0; i < subqueries.size(); i++) {
                function = first(function, above((LogicalPlan) subqueries.apply(i), relation));
            }
            return function;
        }

        private static boolean holds(LogicalPlan plan, WindrowRelation relation) {
            if (plan instanceof LogicalRelation) {
                return relation.equals(((LogicalRelation) plan).relation());
            }
            SEQ children = (SEQ) plan.children();
            for (int i = 0; i < children.size(); i++) {
                if (holds((LogicalPlan) children.apply(i), relation)) return true;
            }
            return false;
        }

        private static String named(Expression expression) {
            if (expression instanceof InputFileName) return "input_file_name";
            if (expression instanceof InputFileBlockStart) return "input_file_block_start";
            if (expression instanceof InputFileBlockLength) return "input_file_block_length";
            return null;
        }
    }

    /** The rows of scans, kept for as long as a query holds them. */
    private static final class Planned {
        private final Map rows = new HashMap();

        synchronized RDD find(String scan) {
            WeakReference held = (WeakReference) rows.get(scan);
            return held == null ? null : (RDD) held.get();
        }

        synchronized void keep(String scan, RDD made) {
            Iterator all = rows.values().iterator();
            while (all.hasNext()) {
                if (((WeakReference) all.next()).get() == null) all.remove();
            }
            rows.put(scan, new WeakReference(made));
        }
    }

    /** Describes a query's jobs by the scans that it reads, unless its user has described them. */
    public static final class Jobs extends SparkListener {
        private static final String DESCRIPTION = "spark.job.description";
        private static final Map BY_CONTEXT = new WeakHashMap();

        private final SparkContext context;
        // By query: the properties of the thread that runs it, and our description.
        private final Map described = new HashMap();

        private Jobs(SparkContext context) {
            this.context = context;
        }

        static synchronized Jobs of(SparkContext context) {
            WeakReference known = (WeakReference) BY_CONTEXT.get(context);
            Jobs jobs = known == null ? null : (Jobs) known.get();
            if (jobs == null) {
                jobs = new Jobs(context);
                context.addSparkListener(jobs);
                BY_CONTEXT.put(context, new WeakReference(jobs));
            }
            return jobs;
        }

        synchronized void describe(String query, String scan) {
            Properties properties = context.getLocalProperties();
            String now = properties.getProperty(DESCRIPTION);
            Object[] known = (Object[]) described.get(query);
            boolean ours = known != null && known[1].equals(now);
            if (now != null && !ours && !isOurs(now)) return;
            String text = ours ? known[1] + "; " + scan : scan;
            properties.setProperty(DESCRIPTION, text);
            described.put(query, new Object[] {properties, text});
        }

        /** Tells whether a description is ours, left by a query that has just ended. */
        private boolean isOurs(String text) {
            Iterator all = described.values().iterator();
            while (all.hasNext()) if (((Object[]) all.next())[1].equals(text)) return true;
            return false;
        }

        public synchronized void onOtherEvent(SparkListenerEvent event) {
            if (!(event instanceof SparkListenerSQLExecutionEnd)) return;
            long query = ((SparkListenerSQLExecutionEnd) event).executionId();
            Object[] known = (Object[]) described.remove(String.valueOf(query));
            if (known != null) ((Properties) known[0]).remove(DESCRIPTION, known[1]);
        }
    }

    /** Returns a filter as a condition of plans, apart from its literals; `op` is null if unknown. */
    private static ObjectNode condition(Filter filter) {
        String operator = (String) OPERATORS.get(filter.getClass().getSimpleName());
        ObjectNode tree = JSON.createObjectNode().put("op", operator);
        if (operator == null) return tree;
        Product parts = (Product) filter;
        Object first = parts.productElement(0);
        if (filter instanceof Not) {
            tree.set("arg", condition((Filter) first));
        } else if (filter instanceof And || filter instanceof Or) {
            ArrayNode args = tree.putArray("args");
            args.add(condition((Filter) first)).add(condition((Filter) parts.productElement(1)));
        } else if (filter instanceof In) {
            ArrayNode values = tree.put("column", (String) first).putArray("values");
            Object[] literals = ((In) filter).values();
            for (int i = 0; i < literals.length; i++) values.add(literal(literals[i]));
        } else if (filter instanceof EqualNullSafe) {
            Object value = ((EqualNullSafe) filter).value();
            if (value == null) return condition(new IsNull((String) first));
            return condition(new And(
                new IsNotNull((String) first), new EqualTo((String) first, value)));
        } else {
            tree.put("column", (String) first);
            String key = filter instanceof StringStartsWith ? "prefix" : "value";
            if (parts.productArity() > 1) tree.set(key, literal(parts.productElement(1)));
        }
        return tree;
    }

    /** Returns a value in Spark's internal form: dates as days, times as microseconds. */
    private static JsonNode literal(Object given) {
        Object value = CatalystTypeConverters.convertToCatalyst(given);
        if (value instanceof Float) value = Double.valueOf(((Float) value).doubleValue());
        else if (value instanceof Decimal) value = ((Decimal) value).toJavaBigDecimal().toPlainString();
        else if (value instanceof byte[]) value = hexadecimal((byte[]) value);
        else if (value != null && !(value instanceof Boolean) && !(value instanceof Number))
            value = value.toString();
        return JSON.valueToTree(value);
    }

    private static String hexadecimal(byte[] bytes) {
        StringBuilder digits = new StringBuilder();
        for (int i = 0; i < bytes.length; i++) {
            digits.append(Character.forDigit((bytes[i] >> 4) & 15, 16));
            digits.append(Character.forDigit(bytes[i] & 15, 16));
        }
        return digits.toString();
    }

    /** Relations of one table, snapshot and conditions are equal, so that Spark reads them once. */
    public boolean equals(Object other) {
        return other instanceof WindrowRelation
            && pin.equals(((WindrowRelation) other).pin)
            && Objects.equals(function, ((WindrowRelation) other).function)
            && session == ((WindrowRelation) other).session;
    }

    public int hashCode() {
        return pin.hashCode();
    }

    /** Returns the name in Spark's plans and its UI. */
    public String toString() {
        return label;
    }
}
