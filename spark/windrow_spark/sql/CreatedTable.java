package windrow;

import com.fasterxml.jackson.databind.JsonNode;
import org.apache.spark.sql.connector.catalog.StagedTable;
import org.apache.spark.sql.connector.write.LogicalWriteInfo;
import org.apache.spark.sql.connector.write.SupportsOverwrite;
import org.apache.spark.sql.connector.write.WriteBuilder;

/**
 * A table that a statement creates, or whose rows it replaces, with rows that follow. It is
 * registered at once, and taken back if they cannot be written.
 */
public final class CreatedTable extends TargetTable implements StagedTable {
    private final JsonNode creation;
    private boolean isWritten;

    CreatedTable(JsonNode answer, Catalog catalog) {
        super(answer, catalog);
        this.creation = Catalog.field(answer, "creation");
    }

    public WriteBuilder newWriteBuilder(LogicalWriteInfo info) {
        isWritten = true;
        WriteBuilder builder = super.newWriteBuilder(info);
        if (Catalog.field(creation, "replaces").asBoolean()) ((SupportsOverwrite) builder).truncate();
        return builder;
    }

    public void commitStagedChanges() {
        if (!isWritten) catalog.end("unwritten", creation);
    }

    public void abortStagedChanges() {
        catalog.end("abort", creation);
    }
}
