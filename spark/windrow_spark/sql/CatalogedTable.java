package windrow;

import com.fasterxml.jackson.databind.JsonNode;
import java.lang.reflect.Constructor;
import java.net.URI;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.Iterator;
import java.util.List;
import java.util.Map;
import org.apache.spark.api.python.PythonUtils;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.TableIdentifier;
import org.apache.spark.sql.catalyst.catalog.CatalogStorageFormat;
import org.apache.spark.sql.catalyst.catalog.CatalogTable;
import org.apache.spark.sql.catalyst.catalog.CatalogTableType$;
import org.apache.spark.sql.connector.catalog.Identifier;
import org.apache.spark.sql.connector.catalog.SupportsPartitionManagement;
import org.apache.spark.sql.connector.catalog.TruncatableTable;
import org.apache.spark.sql.connector.catalog.V1Table;
import org.apache.spark.sql.connector.expressions.Expressions;
import org.apache.spark.sql.connector.expressions.Transform;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.StructType;
import scala.Option;

/**
 * One snapshot of a table, as a table of the format `windrow`: queries read it as the relation that
 * the format opens for it.
 */
public final class CatalogedTable extends V1Table
        implements SupportsPartitionManagement, TruncatableTable {
    private final Catalog catalog;
    private final Identifier identifier;
    private final String table;
    private final String label;
    private final long snapshotId;
    private final Map properties;
    private final Map creation;
    private final CatalogTable described;
    private final StructType columns;
    private final StructType partition;

    CatalogedTable(JsonNode answer, Identifier identifier, Catalog catalog) {
        super(entry(answer, null));
        this.described = entry(answer, catalog);
        this.catalog = catalog;
        this.identifier = identifier;
        this.table = Catalog.text(answer, "table");
        this.label = Catalog.text(answer, "label");
        this.snapshotId = Catalog.field(answer, "snapshot_id").asLong();
        this.properties = textsByName(Catalog.field(answer, "properties"));
        this.creation = textsByName(Catalog.field(answer, "creation"));
        this.columns = (StructType) DataType.fromJson(Catalog.text(answer, "schema"));
        StructType partition = new StructType();
        String[] names = Catalog.texts(Catalog.field(answer, "partition_columns"));
        for (int i = 0; i < names.length; i++) partition = partition.add(columns.apply(names[i]));
        this.partition = partition;
    }

    /** Returns what Spark makes the relation of or, for a catalog, what it tells of the table. */
    private static CatalogTable entry(JsonNode answer, Catalog catalog) {
        try {
            boolean told = catalog != null;
            String location = told
                ? Catalog.text(Catalog.field(answer, "properties"), "location")
                : Catalog.text(answer, "location");
            Object[] storage = defaults(CatalogStorageFormat.class, "apply");
            // Spark hands it to the sinks of streams, as nothing else tells them the table.
            storage[0] = Option.apply(new URI(null, null, location, null));
            if (!told) storage[0] = Option.apply(new URI(location));
            storage[1] = Option.empty();
            storage[2] = Option.empty();
            storage[3] = Option.empty();
            storage[4] = Boolean.FALSE;
            storage[5] = PythonUtils.toScalaMap(
                textsByName(Catalog.field(answer, told ? "own_options" : "options")));
            Object[] entry = defaults(CatalogTable.class, "apply");
            // Spark keeps relations by this name, which therefore tells the snapshot.
            entry[0] = new TableIdentifier(
                Catalog.text(answer, "name"),
                Option.apply(Catalog.text(answer, "database")),
                Option.apply(told ? catalog.name() : Catalog.text(answer, "key")));
            entry[1] = CatalogTableType$.MODULE$.EXTERNAL();
            entry[2] = CatalogStorageFormat.class.getConstructors()[0].newInstance(storage);
            // The relation tells the columns.
            entry[3] = told
                ? DataType.fromJson(Catalog.text(answer, "schema")) : new StructType();
            entry[4] = Option.apply("windrow");
            List folders = new ArrayList();
            String[] names = Catalog.texts(Catalog.field(answer, "partition_columns"));
            for (int i = 0; told && i < names.length; i++) folders.add(names[i]);
            entry[5] = PythonUtils.toSeq(folders);
            if (told) {
                entry[8] = Long.valueOf(Catalog.field(answer, "created_ms").asLong());
                entry[11] = PythonUtils.toScalaMap(
                    textsByName(Catalog.field(answer, "properties")));
            }
            return (CatalogTable) CatalogTable.class.getConstructors()[0].newInstance(entry);
        } catch (Exception error) {
            throw new IllegalStateException(error.toString());
        }
    }

    /** Returns the default arguments of a class, whose number differs between versions of Spark. */
    private static Object[] defaults(Class type, String method) throws Exception {
        Constructor constructor = type.getConstructors()[0];
        Object[] defaults = new Object[constructor.getParameterTypes().length];
        for (int i = 6; i < defaults.length; i++) {
            defaults[i] = type.getMethod(method + "$default$" + (i + 1), new Class[0])
                .invoke(null, new Object[0]);
        }
        return defaults;
    }

    private static Map textsByName(JsonNode texts) {
        Map byName = new HashMap();
        Iterator names = texts.fieldNames();
        while (names.hasNext()) {
            String name = (String) names.next();
            byName.put(name, Catalog.text(texts, name));
        }
        return byName;
    }

    @Override
    public String name() {
        return label;
    }

    /** Spark makes the relation of it, which has a name and options of ours, and also tells it. */
    @Override
    public CatalogTable v1Table() {
        boolean told = Catalog.caller("DescribeRelationJsonCommand", null)
            || Catalog.caller("ResolveSessionCatalog$$anonfun$apply$1", null);
        return told ? described : super.v1Table();
    }

    @Override
    public String toString() {
        return name();
    }

    /** Those that a statement tells need not be those that make another table like this one. */
    @Override
    public Map properties() {
        return Catalog.caller("ShowCreateTableExec", null) ? creation : properties;
    }

    @Override
    public StructType schema() {
        return columns;
    }

    @Override
    public Transform[] partitioning() {
        String[] names = partition.fieldNames();
        Transform[] partitioning = new Transform[names.length];
        for (int i = 0; i < names.length; i++) {
            partitioning[i] = Expressions.identity(names[i]);
        }
        return partitioning;
    }

    @Override
    public StructType partitionSchema() {
        return partition;
    }

    @Override
    public InternalRow[] listPartitionIdentifiers(String[] names, InternalRow values) {
        InternalRow[] all = catalog.partitions(table, snapshotId);
        List some = new ArrayList();
        for (int i = 0; i < all.length; i++) {
            boolean fits = true;
            for (int j = 0; j < names.length; j++) {
                int at = partition.fieldIndex(names[j]);
                DataType type = partition.fields()[at].dataType();
                Object value = all[i].get(at, type);
                Object wanted = values.get(j, type);
                fits &= value == null ? wanted == null : value.equals(wanted);
            }
            if (fits) some.add(all[i]);
        }
        return (InternalRow[]) some.toArray(new InternalRow[some.size()]);
    }

    @Override
    public Map loadPartitionMetadata(InternalRow values) {
        return new HashMap();
    }

    @Override
    public void createPartition(InternalRow values, Map metadata) {
        throw catalog.refusal("ALTER TABLE", identifier);
    }

    @Override
    public boolean dropPartition(InternalRow values) {
        throw catalog.refusal("ALTER TABLE", identifier);
    }

    @Override
    public void replacePartitionMetadata(InternalRow values, Map metadata) {
        throw catalog.refusal("ALTER TABLE", identifier);
    }

    @Override
    public boolean truncateTable() {
        throw catalog.refusal("TRUNCATE TABLE", identifier);
    }
}
