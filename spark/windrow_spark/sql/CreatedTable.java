package windrow;

import com.fasterxml.jackson.databind.JsonNode;
import org.apache.spark.sql.connector.catalog.StagedTable;
import org.apache.spark.sql.connector.write.LogicalWriteInfo;
import org.apache.spark.sql.connector.write.SupportsOverwrite;
import org.apache.spark.sql.connector.write.WriteBuilder;

/**
 * A table that a statement creates, or whose rows it replaces, with rows that follow. It is there
 * from its first snapshot on; the registration is taken back if the rows cannot be written.
 */
public final class CreatedTable extends TargetTable implements StagedTable {
    private final JsonNode creation;
    private boolean isWritten;

    CreatedTable(JsonNode answer, Catalog catalog) {
        super(answer, catalog);
        this.creation = Catalog.field(answer, "creation");
    }

    @Override
    public WriteBuilder newWriteBuilder(LogicalWriteInfo info) {
        isWritten = true;
        // Also of a new table: of two statements that create one, the later must not add its rows.
        return ((SupportsOverwrite) super.newWriteBuilder(info)).truncate();
    }

    @Override
    public void commitStagedChanges() {
        if (!isWritten) catalog.end("unwritten", creation);
    }

    @Override
    public void abortStagedChanges() {
        catalog.end("abort", creation);
    }
}
