package windrow;

import com.fasterxml.jackson.databind.JsonNode;
import java.util.Set;
import java.util.function.BiFunction;
import org.apache.spark.sql.connector.catalog.SupportsRead;
import org.apache.spark.sql.connector.catalog.TableCapability;
import org.apache.spark.sql.connector.read.Scan;
import org.apache.spark.sql.connector.read.ScanBuilder;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;

/**
 * A table that a statement deletes rows from: Spark analyses the condition, `TableInsert.java` hands
 * it on, and Python erases the rows.
 */
public final class ErasableTable extends TargetTable implements SupportsRead, BiFunction {
    ErasableTable(JsonNode answer, Catalog catalog) {
        super(answer, catalog);
    }

    @Override
    public Set capabilities() {
        Set capabilities = super.capabilities();
        capabilities.add(TableCapability.BATCH_READ);
        return capabilities;
    }

    /** Spark plans a scan before it looks at the statement, and never runs it. */
    @Override
    public ScanBuilder newScanBuilder(CaseInsensitiveStringMap options) {
        return new Unread(schema());
    }

    @Override
    public Object apply(Object session, Object condition) {
        catalog.erase(table, session, (String) condition);
        return null;
    }

    void refuse(String statement) {
        catalog.refuse(statement, table);
    }

    private static final class Unread implements ScanBuilder, Scan {
        private final StructType columns;

        Unread(StructType columns) {
            this.columns = columns;
        }

        @Override
        public Scan build() {
            return this;
        }

        @Override
        public StructType readSchema() {
            return columns;
        }
    }
}
