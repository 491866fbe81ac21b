package windrow;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.IOException;
import java.util.HashMap;
import java.util.Iterator;
import java.util.Map;
import java.util.Set;
import java.util.function.BiFunction;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.SparkSessionExtensions;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.analysis.NoSuchNamespaceException;
import org.apache.spark.sql.catalyst.analysis.NoSuchTableException;
import org.apache.spark.sql.connector.catalog.*;
import org.apache.spark.sql.connector.expressions.Transform;
import org.apache.spark.sql.internal.SQLConf$;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;

/**
 * The class that Spark loads for a catalog of a coordinator's tables; Python answers for it. Its
 * PARENT is `Procedures.java` from Spark 4 on, and nothing in particular before.
 */
public final class Catalog extends PARENT implements StagingTableCatalog, SupportsNamespaces {
    private static final ObjectMapper JSON = new ObjectMapper();
    private static BiFunction python;

    private String name;
    private String coordinator;

    /** Sets the function that answers for all catalogs, also in the sessions of these extensions. */
    public void answerBy(BiFunction python, SparkSessionExtensions extensions) {
        Catalog.python = python;
        RefusedStatements.extend(extensions);
    }

    @Override
    public void initialize(String name, CaseInsensitiveStringMap options) {
        this.name = name;
        this.coordinator = options.get("coordinator");
        // Spark keeps catalogs whose beginning succeeds: one without a coordinator is of no use.
        ask(request("begin"));
    }

    @Override
    public String name() {
        return name;
    }

    /** Spark shows plans in errors, and catalogs in them. */
    @Override
    public String toString() {
        return name;
    }

    @Override
    public String[] defaultNamespace() {
        return new String[] {"default"};
    }

    @Override
    public String[][] listNamespaces() {
        return namespaces(ask(inNamespace("namespaces", new String[0])));
    }

    @Override
    public String[][] listNamespaces(String[] namespace) throws NoSuchNamespaceException {
        JsonNode answer = ask(inNamespace("namespaces", namespace));
        if (answer.isNull()) throw new NoSuchNamespaceException(namespace);
        return namespaces(answer);
    }

    private static String[][] namespaces(JsonNode answer) {
        String[][] namespaces = new String[answer.size()][];
        for (int i = 0; i < namespaces.length; i++) namespaces[i] = texts(item(answer, i));
        return namespaces;
    }

    @Override
    public Map loadNamespaceMetadata(String[] namespace) throws NoSuchNamespaceException {
        // A namespace is the beginning of names, and so has nothing but its name.
        listNamespaces(namespace);
        return new HashMap();
    }

    @Override
    public Identifier[] listTables(String[] namespace) throws NoSuchNamespaceException {
        JsonNode answer = ask(inNamespace("tables", namespace));
        if (answer.isNull()) throw new NoSuchNamespaceException(namespace);
        Identifier[] tables = new Identifier[answer.size()];
        for (int i = 0; i < tables.length; i++) {
            JsonNode table = item(answer, i);
            tables[i] = new Name(texts(field(table, "namespace")), text(table, "name"));
        }
        return tables;
    }

    /** Spark asks before it creates a table: one without a snapshot is not there yet. */
    @Override
    public boolean tableExists(Identifier table) {
        return ask(onTable("exists", table)).asBoolean();
    }

    @Override
    public Table loadTable(Identifier table) throws NoSuchTableException {
        ObjectNode request = onTable("table", table);
        if (caller("DataStreamWriter", null)) request.put("for_stream", true);
        return loaded(table, request);
    }

    @Override
    public Table loadTable(Identifier table, String version) throws NoSuchTableException {
        return loaded(table, onTable("table", table).put("version", version));
    }

    @Override
    public Table loadTable(Identifier table, long microseconds) throws NoSuchTableException {
        return loaded(table, onTable("table", table).put("timestamp_us", microseconds));
    }

    /**
     * Spark loads here what it is to write. It must not get a table of version 1, whose name it
     * would look up in its own catalog.
     */
    @Override
    public Table loadTable(Identifier table, Set privileges) throws NoSuchTableException {
        JsonNode answer = ask(onTable("target", table));
        if (answer.isNull()) throw new NoSuchTableException(table);
        if (privileges.contains(TableWritePrivilege.UPDATE)) throw refusal("write", table);
        prepare();
        return privileges.contains(TableWritePrivilege.INSERT)
            ? new TargetTable(answer, this) : new ErasableTable(answer, this);
    }

    /** Lets sessions plan what `TableStrategy.java` does. */
    private void prepare() {
        ask(request("prepare"));
    }

    /** Lets Python write rows, in the thread of the statement, to which its jobs belong. */
    void write(ObjectNode request, Object session, Object rows) {
        answer(request, new Object[] {session, rows});
    }

    /** Lets Python erase the rows of a condition, in the thread of the statement. */
    void erase(String table, Object session, String condition) {
        try {
            ObjectNode request = request("delete").put("table", table);
            request.set("condition", JSON.readTree(condition));
            answer(request, new Object[] {session});
        } catch (IOException error) {
            throw new IllegalStateException(error.toString());
        }
    }

    /** Throws the error that says what to do instead of a use of a table. */
    void refuse(String statement, String table) {
        ask(onTable("refuse", new Name(new String[0], table)).put("statement", statement));
    }

    private Table loaded(Identifier table, ObjectNode request) throws NoSuchTableException {
        JsonNode answer = ask(request);
        if (answer.isNull()) throw new NoSuchTableException(table);
        return new CatalogedTable(answer, table, this);
    }

    /** Spark calls this for REFRESH TABLE, and then forgets what it has kept of the table. */
    @Override
    public void invalidateTable(Identifier table) {
        // A stream asks after each batch, whose files are published already.
        ask(onTable(caller("MicroBatchExecution", "refreshTable") ? "follow" : "refresh", table));
    }

    /** Tells whether a class of Spark's is among the callers, by a method of the next one if given. */
    static boolean caller(String type, String method) {
        StackTraceElement[] calls = new Throwable().getStackTrace();
        for (int i = 1; i < calls.length; i++) {
            if (calls[i].getClassName().endsWith("." + type))
                return method == null || calls[i - 1].getMethodName().equals(method);
        }
        return false;
    }

    /** Returns the partitions of a table's snapshot, a row of values for each. */
    InternalRow[] partitions(String table, long snapshotId) {
        return (InternalRow[]) answer(
            request("partitions").put("table", table).put("snapshot_id", snapshotId));
    }

    @Override
    public Table createTable(
            Identifier table, StructType columns, Transform[] partitions, Map properties) {
        return new TargetTable(
            ask(creation("create", table, columns, partitions, properties)), this);
    }

    /** Spark creates a table here whose rows follow. */
    @Override
    public StagedTable stageCreate(
            Identifier table, StructType columns, Transform[] partitions, Map properties) {
        return new CreatedTable(
            ask(creation("stage", table, columns, partitions, properties)), this);
    }

    @Override
    public StagedTable stageReplace(
            Identifier table, StructType columns, Transform[] partitions, Map properties)
            throws NoSuchTableException {
        if (!tableExists(table)) throw new NoSuchTableException(table);
        return stageCreateOrReplace(table, columns, partitions, properties);
    }

    @Override
    public StagedTable stageCreateOrReplace(
            Identifier table, StructType columns, Transform[] partitions, Map properties) {
        return new CreatedTable(
            ask(creation("replace", table, columns, partitions, properties)), this);
    }

    private ObjectNode creation(
            String use, Identifier table, StructType columns, Transform[] partitions,
            Map properties) {
        prepare();
        ObjectNode request = onTable(use, table);
        ArrayNode fields = request.putArray("columns");
        for (int i = 0; i < columns.fields().length; i++) {
            StructField field = columns.fields()[i];
            fields.addObject().put("name", field.name()).put("type", field.dataType().sql())
                .put("nullable", field.nullable());
        }
        ArrayNode names = request.putArray("partitions");
        for (int i = 0; i < partitions.length; i++) {
            boolean plain = partitions[i].name().equals("identity")
                && partitions[i].references()[0].fieldNames().length == 1;
            names.add(plain ? partitions[i].references()[0].fieldNames()[0] : null);
        }
        ObjectNode texts = request.putObject("properties");
        Iterator all = properties.entrySet().iterator();
        while (all.hasNext()) {
            Map.Entry property = (Map.Entry) all.next();
            texts.put((String) property.getKey(), (String) property.getValue());
        }
        return request;
    }

    /** Ends the creation of a table, as `CreatedTable.java` says. */
    void end(String use, JsonNode creation) {
        ask((ObjectNode) request(use).set("creation", creation));
    }

    @Override
    public Table alterTable(Identifier table, TableChange[] changes) {
        try {
            throw refusal("ALTER TABLE", table);
        } catch (IllegalArgumentException error) {
            // Spark wraps the others.
            throw new UnsupportedOperationException(error.getMessage());
        }
    }

    @Override
    public void renameTable(Identifier table, Identifier name) {
        throw refusal("ALTER TABLE", table);
    }

    @Override
    public boolean dropTable(Identifier table) {
        throw refusal("DROP TABLE", table);
    }

    @Override
    public boolean purgeTable(Identifier table) {
        throw refusal("DROP TABLE", table);
    }

    @Override
    public void createNamespace(String[] namespace, Map metadata) {
        throw refusal("CREATE NAMESPACE", new Name(new String[0], dotted(namespace)));
    }

    @Override
    public void alterNamespace(String[] namespace, NamespaceChange[] changes) {
        throw refusal("ALTER NAMESPACE", new Name(new String[0], dotted(namespace)));
    }

    @Override
    public boolean dropNamespace(String[] namespace, boolean cascade) {
        throw refusal("DROP NAMESPACE", new Name(new String[0], dotted(namespace)));
    }

    /** Returns the error that says what to do instead of a statement on a namespace. */
    RuntimeException refusal(String statement, String table) {
        return refusal(statement, new Name(new String[0], table));
    }

    /** Returns the error that says what to do instead of a statement. */
    RuntimeException refusal(String statement, Identifier table) {
        ask(onTable("refuse", table).put("statement", statement));
        return new UnsupportedOperationException(statement);
    }

    JsonNode procedure(Identifier name) {
        return ask(onTable("procedure", name));
    }

    String[] procedures(String[] namespace) {
        return texts(ask(inNamespace("procedures", namespace)));
    }

    JsonNode call(String procedure, ObjectNode arguments) {
        ObjectNode request = request("call").put("procedure", procedure);
        request.set("arguments", arguments);
        return ask(request);
    }

    ObjectNode request(String use) {
        return JSON.createObjectNode()
            .put("use", use)
            .put("catalog", name)
            .put("coordinator", coordinator)
            .put("case_sensitive", SQLConf$.MODULE$.get().caseSensitiveAnalysis());
    }

    private ObjectNode inNamespace(String use, String[] namespace) {
        ObjectNode request = request(use);
        ArrayNode parts = request.putArray("namespace");
        for (int i = 0; i < namespace.length; i++) parts.add(namespace[i]);
        return request;
    }

    private ObjectNode onTable(String use, Identifier table) {
        return inNamespace(use, table.namespace()).put("name", table.name());
    }

    private JsonNode ask(ObjectNode request) {
        try {
            return field(JSON.readTree((byte[]) answer(request)), "answer");
        } catch (IOException error) {
            throw new IllegalStateException(error.toString());
        }
    }

    private Object answer(ObjectNode request) {
        return answer(request, new Object[] {SparkSession.active()});
    }

    private Object answer(ObjectNode request, Object[] objects) {
        Object answer = python.apply(request.toString(), objects);
        // This is the only exception of which PySpark shows nothing but the message.
        if (answer instanceof String) throw new IllegalArgumentException((String) answer);
        return answer;
    }

    // The compiler knows no covariant results.
    private static JsonNode item(JsonNode list, int at) {
        return (JsonNode) list.get(at);
    }

    static JsonNode field(JsonNode object, String name) {
        return (JsonNode) object.get(name);
    }

    static String text(JsonNode object, String name) {
        return field(object, name).asText();
    }

    private static String dotted(String[] names) {
        StringBuilder text = new StringBuilder();
        for (int i = 0; i < names.length; i++) text.append(i > 0 ? "." : "").append(names[i]);
        return text.toString();
    }

    static String[] texts(JsonNode list) {
        String[] texts = new String[list.size()];
        for (int i = 0; i < texts.length; i++) texts[i] = item(list, i).asText();
        return texts;
    }

    private static final class Name implements Identifier {
        private final String[] namespace;
        private final String name;

        Name(String[] namespace, String name) {
            this.namespace = namespace;
            this.name = name;
        }

        @Override
        public String[] namespace() {
            return namespace;
        }

        @Override
        public String name() {
            return name;
        }
    }
}
