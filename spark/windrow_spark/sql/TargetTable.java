package windrow;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.util.HashSet;
import java.util.Iterator;
import java.util.Map;
import java.util.Set;
import java.util.function.BiFunction;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.catalyst.CatalystTypeConverters;
import org.apache.spark.sql.connector.catalog.SupportsWrite;
import org.apache.spark.sql.connector.catalog.TableCapability;
import org.apache.spark.sql.connector.expressions.Expressions;
import org.apache.spark.sql.connector.expressions.Transform;
import org.apache.spark.sql.connector.write.LogicalWriteInfo;
import org.apache.spark.sql.connector.write.SupportsDynamicOverwrite;
import org.apache.spark.sql.connector.write.SupportsOverwrite;
import org.apache.spark.sql.connector.write.V1Write;
import org.apache.spark.sql.connector.write.Write;
import org.apache.spark.sql.connector.write.WriteBuilder;
import org.apache.spark.sql.sources.*;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.Decimal;
import org.apache.spark.sql.types.StructType;

/** A table that a statement writes to: Spark fits the rows to it, and Python writes them. */
public class TargetTable implements SupportsWrite {
    final Catalog catalog;
    final String table;
    private final StructType columns;
    private final String[] partition;

    TargetTable(JsonNode answer, Catalog catalog) {
        this(
            catalog, Catalog.text(answer, "table"),
            (StructType) DataType.fromJson(Catalog.text(answer, "schema")),
            Catalog.texts(Catalog.field(answer, "partition_columns")));
    }

    TargetTable(Catalog catalog, String table, StructType columns, String[] partition) {
        this.catalog = catalog;
        this.table = table;
        this.columns = columns;
        this.partition = partition;
    }

    @Override
    public String name() {
        return catalog.name() + "." + table;
    }

    @Override
    public String toString() {
        return name();
    }

    @Override
    public StructType schema() {
        return columns;
    }

    @Override
    public Transform[] partitioning() {
        Transform[] transforms = new Transform[partition.length];
        for (int i = 0; i < transforms.length; i++) {
            transforms[i] = Expressions.identity(partition[i]);
        }
        return transforms;
    }

    @Override
    public Set capabilities() {
        Set capabilities = new HashSet();
        capabilities.add(TableCapability.V1_BATCH_WRITE);
        capabilities.add(TableCapability.BATCH_WRITE);
        capabilities.add(TableCapability.TRUNCATE);
        capabilities.add(TableCapability.OVERWRITE_BY_FILTER);
        capabilities.add(TableCapability.OVERWRITE_DYNAMIC);
        return capabilities;
    }

    @Override
    public WriteBuilder newWriteBuilder(LogicalWriteInfo info) {
        ObjectNode request = catalog.request("write").put("table", table).put("mode", "append");
        ObjectNode options = request.putObject("options");
        Iterator all = info.options().asCaseSensitiveMap().entrySet().iterator();
        while (all.hasNext()) {
            Map.Entry option = (Map.Entry) all.next();
            options.put((String) option.getKey(), (String) option.getValue());
        }
        request.putObject("partition");
        return new Builder(this, request);
    }

    /** Takes what a statement does with the rows that the table has. */
    private static final class Builder
            implements WriteBuilder, SupportsOverwrite, SupportsDynamicOverwrite {
        private final TargetTable target;
        private final ObjectNode request;

        Builder(TargetTable target, ObjectNode request) {
            this.target = target;
            this.request = request;
        }

        @Override
        public WriteBuilder truncate() {
            request.put("mode", "overwrite");
            return this;
        }

        @Override
        public WriteBuilder overwriteDynamicPartitions() {
            request.put("mode", "dynamic");
            return this;
        }

        @Override
        public WriteBuilder overwrite(Filter[] filters) {
            request.put("mode", "overwrite");
            ObjectNode partition = (ObjectNode) request.get("partition");
            for (int i = 0; i < filters.length; i++) add(partition, filters[i]);
            return this;
        }

        /** Adds the only value that a condition leaves a column, in Spark's internal form. */
        private void add(ObjectNode partition, Filter filter) {
            String column = null;
            Object value = null;
            if (filter instanceof AlwaysTrue) return;
            if (filter instanceof And) {
                add(partition, ((And) filter).left());
                add(partition, ((And) filter).right());
                return;
            } else if (filter instanceof EqualTo) {
                column = ((EqualTo) filter).attribute();
                value = ((EqualTo) filter).value();
            } else if (filter instanceof EqualNullSafe) {
                column = ((EqualNullSafe) filter).attribute();
                value = ((EqualNullSafe) filter).value();
            } else if (filter instanceof IsNull) {
                column = ((IsNull) filter).attribute();
            } else if (filter instanceof IsNotNull
                    && partition.hasNonNull(((IsNotNull) filter).attribute())) {
                return;
            }
            Object internal = CatalystTypeConverters.convertToCatalyst(value);
            if (column == null || partition.has(column) || internal instanceof byte[]) {
                target.catalog.refuse("overwrite", target.table);
            }
            if (internal instanceof Decimal) internal = ((Decimal) internal).toJavaBigDecimal();
            partition.put(column, internal == null ? null : internal.toString());
        }

        @Override
        public Write build() {
            return new TargetWrite(target, request);
        }
    }

    /**
     * A statement's write: Spark gives it the rows; or, if it replaces partitions that get new
     * ones, `TableInsert.java` does, since Spark has no such writes of version 1.
     */
    public static final class TargetWrite implements V1Write, InsertableRelation, BiFunction {
        private final TargetTable target;
        private final ObjectNode request;

        TargetWrite(TargetTable target, ObjectNode request) {
            this.target = target;
            this.request = request;
        }

        @Override
        public InsertableRelation toInsertableRelation() {
            return this;
        }

        @Override
        public void insert(Dataset rows, boolean overwrite) {
            target.catalog.write(request, SparkSession.active(), rows);
        }

        @Override
        public Object apply(Object session, Object query) {
            target.catalog.write(request, session, query);
            return null;
        }

        @Override
        public String description() {
            return target.name();
        }

        @Override
        public String toString() {
            return target.name();
        }
    }
}
